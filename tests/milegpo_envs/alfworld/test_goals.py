import pytest

from milegpo_envs.alfworld.engine import UnsupportedGame
from milegpo_envs.alfworld.goals import ground_goal
from milegpo_envs.alfworld.pddl import parse, read_problem, typed

PROBLEM = """
(define (problem p) (:domain alfred)
 (:objects agent1 - agent  A B C - object  R S - receptacle  L M - location)
 (:init (objectType A T) (objectType B T) (objectType C U) ; a comment (with parentheses)
        (receptacleType R V) (receptacleType S W) (receptacleAtLocation R L)
        (inReceptacle A S) (= (total-cost) 0) (atLocation agent1 M) )
 (:goal %s))
"""


def ground(goal):
    return set(ground_goal(read_problem(PROBLEM % goal)))


def test_a_problem_is_read_in_lower_case_without_comments_and_costs():
    problem = read_problem(PROBLEM % "(and)")
    assert ("a", "object") in problem.objects
    assert ("m", "location") in problem.objects
    assert ("objecttype", "b", "t") in problem.init
    assert not any(fact[0] in ("=", "total-cost") for fact in problem.init)


def test_typed_lists_give_every_name_the_next_type():
    assert typed(["a", "b", "-", "t", "c"]) == [("a", "t"), ("b", "t"), ("c", "object")]


@pytest.mark.parametrize("text", ["(a", "a)", "(a))", "", "(a) (b)"])
def test_unbalanced_text_is_refused(text):
    with pytest.raises(UnsupportedGame):
        parse(text)


def test_an_existential_goal_becomes_alternatives():
    goal = """(exists (?r - receptacle) (exists (?o - object)
        (and (inReceptacle ?o ?r) (objectType ?o T) (receptacleType ?r V))))"""
    assert ground(goal) == {
        frozenset({("inreceptacle", "a", "r")}),
        frozenset({("inreceptacle", "b", "r")}),
    }


def test_two_different_objects_must_differ_and_their_order_does_not_matter():
    goal = """(exists (?r - receptacle ?x - object ?y - object)
        (and (not (= ?x ?y)) (objectType ?x T) (objectType ?y T) (receptacleType ?r V)
             (inReceptacle ?x ?r) (inReceptacle ?y ?r)))"""
    assert ground(goal) == {frozenset({("inreceptacle", "a", "r"), ("inreceptacle", "b", "r")})}


def test_a_name_bound_twice_means_two_variables():
    goal = """(and (exists (?o - object) (and (objectType ?o T) (isHot ?o)))
                   (exists (?o - object) (and (objectType ?o U) (isHot ?o))))"""
    assert ground(goal) == {
        frozenset({("ishot", "a"), ("ishot", "c")}),
        frozenset({("ishot", "b"), ("ishot", "c")}),
    }


def test_variables_without_a_static_fact_range_over_their_type():
    assert ground("(exists (?a - agent ?o - object) (holds ?a ?o))") == {
        frozenset({("holds", "agent1", o)}) for o in "abc"
    }


def test_an_impossible_goal_has_no_alternative():
    assert ground("(exists (?o - object) (and (objectType ?o X) (isHot ?o)))") == set()


@pytest.mark.parametrize(
    "goal",
    [
        "(or (isHot A) (isHot B))",
        "(forall (?o - object) (isHot ?o))",
        "(not (isHot A))",
        "hot",
        "(and (or (isHot A)))",
    ],
)
def test_other_goals_are_refused(goal):
    with pytest.raises(UnsupportedGame):
        ground(goal)
