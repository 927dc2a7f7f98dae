from tests.service import Service


async def test_a_person_signs_in_and_sees_who_they_are(service: Service) -> None:
    person = await service.sign_in()
    answer = await person.get("/api/me")
    print(answer.json(), answer.headers)
    assert answer.status_code == 200
    ready = await service.http.get("/health/ready")
    print(ready.json())
    print((await service.http.get("/nothing")).text)
    print((await service.http.get("/metrics")).text[-300:])
    spec = await service.http.get("/openapi.json")
    assert spec.status_code == 200
