"""A question to a coordinator stands until the transaction is open, has ended, or nobody can wait for it any more."""

from odradek.broker.log.verifications import Verifications


def test_all_batches_that_wait_share_a_question_and_its_lowest_sequence() -> None:
    verifications = Verifications()
    asked = verifications.begin(7, 3, 5, 0)
    for sequence in (6, 4):
        assert verifications.begin(7, 3, sequence, 0) is asked
    assert asked.lowest_sequence == 4
    assert verifications.begin(8, 3, 0, 0) is not asked
    assert verifications.stands(7, asked)
    assert not verifications.stands(8, asked)


def test_a_newer_epoch_asks_anew_and_an_older_one_changes_nothing() -> None:
    verifications = Verifications()
    old = verifications.begin(7, 3, 5, 0)
    new = verifications.begin(7, 4, 9, 0)
    assert new is not old
    assert not verifications.stands(7, old)
    assert verifications.begin(7, 3, 0, 0) is new
    assert new.lowest_sequence == 9


def test_what_has_ended_does_not_stand_and_is_asked_anew() -> None:
    verifications = Verifications()
    asked = verifications.begin(7, 3, 5, 0)
    verifications.end(7)
    assert not verifications.stands(7, asked)
    assert verifications.begin(7, 3, 5, 0) is not asked
    verifications.end(8)


def test_an_end_of_earlier_epochs_leaves_the_question_of_a_later_one() -> None:
    verifications = Verifications()
    asked = verifications.begin(7, 3, 5, 0)
    verifications.end(7, before_epoch=3)
    assert verifications.stands(7, asked)
    verifications.end(7, before_epoch=4)
    assert not verifications.stands(7, asked)


def test_questions_are_forgotten_after_a_time() -> None:
    verifications = Verifications()
    early, late = verifications.begin(7, 0, 0, 0), verifications.begin(8, 0, 0, 50)
    verifications.expire(100, 100)
    assert (verifications.stands(7, early), verifications.stands(8, late)) == (False, True)
