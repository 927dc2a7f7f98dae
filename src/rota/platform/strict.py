"""Models that refuse unknown fields and suggest the field that was probably meant.

Request bodies and the JSON in settings use them. A typo in a name would otherwise be ignored, and
the request would do something else than its sender wanted.
"""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from rota.platform.validation_words import problem

# A client chooses the names, so both their number and their length are limited.
MAX_ERRORS = 20
MAX_NAME_CHARACTERS = 100


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most similar to `name`, if one is similar enough."""
    by_lower = {each.lower(): each for each in sorted(known)}
    lower = name[:MAX_NAME_CHARACTERS].lower()
    found = get_close_matches(lower, by_lower, 1)
    # A name inside the other one: `assignedAgent` means `agent`.
    found += [each for each in by_lower if len(each) > 2 and each in lower]
    return by_lower[found[0]] if found else None


def unknown(noun: str, name: str, known: Collection[str]) -> str:
    """The message for a name that does not exist."""
    suggestion = nearest(name, known)
    return f"Unknown {noun}. Did you mean `{suggestion}`?" if suggestion else f"Unknown {noun}."


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    # Names that are accepted and ignored.
    ignored: ClassVar[frozenset[str]] = frozenset()
    # The names of the fields, as a sender writes them.
    names: ClassVar[frozenset[str]] = frozenset()
    _accepted: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.names = frozenset(f.alias or name for name, f in cls.model_fields.items())
        by_name = cls.model_config.get("populate_by_name")
        cls._accepted = cls.names | (cls.model_fields.keys() if by_name else set())

    @model_validator(mode="wrap")
    @classmethod
    def _suggest_names(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict) or cls._accepted >= data.keys():
            return handler(data)
        data = {name: value for name, value in data.items() if name not in cls.ignored}
        try:
            return handler(data)
        except ValidationError as error:
            errors = error.errors(include_url=False)[:MAX_ERRORS]
            raise ValidationError.from_exception_data(
                error.title, [cls._renamed(each) for each in errors]
            ) from None

    @classmethod
    def _renamed(cls, error: Any) -> InitErrorDetails:
        """The error, with a suggestion if the field is unknown."""
        kind, message = error["type"], problem(error)
        # Models inside this one have already replaced their own errors.
        if kind == "extra_forbidden":
            kind, message = "unknown_field", unknown("field", str(error["loc"][0]), cls.names)
        return _custom(error, kind, message)


def _custom(
    error: Any, kind: str, message: str, place: tuple[int | str, ...] = ()
) -> InitErrorDetails:
    """The error with this message, at its own place if no other is given."""
    # The message as a value: its own braces would be read as placeholders.
    custom = PydanticCustomError(kind, "{text}", {"text": message})
    return InitErrorDetails(type=custom, loc=place or error["loc"], input=error["input"])


def _first_errors(items: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Continues after each wrong item until there are MAX_ERRORS errors."""
    errors: list[InitErrorDetails] = []
    start = 0
    title = ""
    while not errors or (start < len(items) and len(errors) < MAX_ERRORS):
        try:
            valid = validate(items[start:] if start else items)
        except ValidationError as error:
            found = error.errors(include_url=False)
            if not found[0]["loc"]:
                # The list itself is wrong.
                if not errors:
                    raise
                break
            title = error.title
            for each in found:
                index, *within = each["loc"]
                place = (start + int(index), *within)
                errors.append(_custom(each, each["type"], problem(each), place))
            start += int(found[0]["loc"][0]) + 1
        else:
            if not errors:
                return valid
            break
    raise ValidationError.from_exception_data(title, errors[:MAX_ERRORS])


# For a list of models with FailFast, before this in `Annotated`. Thousands of wrong models take
# longer to describe than to send. With both, the first wrong ones are described.
FIRST_ERRORS = WrapValidator(_first_errors)
