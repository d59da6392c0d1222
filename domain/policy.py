"""The policy an order runs under: every deadline, limit and wait, frozen into its history when it is opened.

Seconds everywhere. A change of settings reaches new orders only, and a replay sees what the order saw.
"""

from pydantic import BaseModel, ConfigDict


class OrderPolicy(BaseModel):
    """The numbers of one order's saga (DESIGN, "The saga"). The deadlines and limits come from settings; the rest
    only tests change.
    """

    model_config = ConfigDict(frozen=True)

    #: How long the shopper has to pay, 3-D Secure included: half an hour keeps stock from standing idle.
    payment_deadline_seconds: float = 1800
    #: A reviewer has two working days.
    review_deadline_seconds: float = 172_800
    #: While the scorer is down and a person is asked, it is asked again this often.
    rescore_every_seconds: float = 300
    #: Orders over this total are looked at by a person; None: every order in this currency is.
    review_limit_minor: int | None = None
    #: Scores above this one are looked at by a person.
    review_score: int = 90

    #: First wait before another try, doubled each time. Stock is our own database and answers sooner.
    first_wait_seconds: float = 2
    stock_first_wait_seconds: float = 1
    undo_first_wait_seconds: float = 5
    #: The longest wait between tries; captures may wait longer, since they must not give up early.
    longest_wait_seconds: float = 60
    capture_longest_wait_seconds: float = 300

    #: start_to_close of a step, and of one that asks a provider two or three times in one attempt: each request has
    #: a time-out of 5 s.
    step_timeout_seconds: float = 10
    several_requests_timeout_seconds: float = 20

    #: How long "not now" (429, 503, refused connection) is waited for before it counts as run out.
    not_served_seconds: float = 3600
    booking_not_served_seconds: float = 120
    #: The wait when the provider named none.
    not_served_wait_seconds: float = 2

    #: While an operator holds a provider, a waiting step looks this often whether it still does: doubled up to the
    #: longest, so that three days of waiting are nine hundred looks in the history and a release is seen in minutes.
    hold_first_look_seconds: float = 15
    hold_longest_look_seconds: float = 300

    #: A lost webhook is found by reading the intent: first after this, then three times as late each time.
    first_poll_seconds: float = 5
    #: A payment still processing at the deadline is read this often until it is this old.
    processing_poll_seconds: float = 300
    processing_limit_seconds: float = 86_400

    #: A parked step with a technical cause is tried again after this, doubled up to the longest.
    park_first_wait_seconds: float = 900
    park_longest_wait_seconds: float = 14_400
