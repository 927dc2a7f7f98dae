"""The page with the API description works under its security policy."""

from playwright.async_api import Browser, expect

from tests.e2e.browser import Tab
from tests.service import Service

ADD_SCRIPT = """
() => {
  const script = document.createElement('script');
  script.textContent = 'window.ran = true';
  document.body.append(script);
  return window.ran;
}
"""


async def test_an_operation_can_be_tried_on_the_page(browser: Browser, service_a: Service) -> None:
    async with Tab.open(browser, service_a) as tab:
        response = await tab.page.goto("/docs")
        assert response is not None
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self' 'sha256-" in policy
        await expect(tab.page.get_by_role("heading", name="Rota")).to_be_visible()
        operation = tab.page.locator("#operations-Auth-auth_config")
        await operation.get_by_role("button").first.click()
        await tab.page.get_by_role("button", name="Try it out").click()
        await tab.page.get_by_role("button", name="Execute").click()
        responses = operation.locator(".live-responses-table")
        await expect(responses.get_by_role("cell", name="200", exact=True).first).to_be_visible()
        # A script that somebody adds to the page does not run.
        tab.expect_error("(?i)security policy")
        assert await tab.page.evaluate(ADD_SCRIPT) is None
        assert any("script-src" in error for error in tab.errors)
