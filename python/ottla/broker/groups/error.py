"""What a rule of groups refuses, as the error code its request is answered with."""


class GroupError(Exception):
    """A request that is refused.

    Attributes:
        error_code: Kafka's.
        message: a sentence for answers that carry one.
    """

    def __init__(self, error_code: int, message: str | None = None) -> None:
        super().__init__(error_code, message)
        self.error_code = error_code
        self.message = message
