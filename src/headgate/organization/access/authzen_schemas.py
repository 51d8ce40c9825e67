"""Schemas of the AuthZEN Authorization API 1.0, which requires unknown fields to be ignored."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from headgate.kit.request_models import LooseInput

MAX_EVALUATIONS = 500
LONGEST = 400


class SubjectIn(LooseInput):
    """A member."""

    type: str = Field(max_length=LONGEST, examples=["member"])
    id: str = Field(max_length=LONGEST, examples=["Bob"])
    properties: dict[str, Any] = Field({})


class SubjectType(LooseInput):
    """The type of subjects to search."""

    type: str = Field(max_length=LONGEST, examples=["member"])


class ActionIn(LooseInput):
    """An action."""

    name: str = Field(max_length=LONGEST, examples=["edit"])
    properties: dict[str, Any] = Field({})


class ResourceIn(LooseInput):
    """A resource."""

    type: str = Field(max_length=LONGEST, examples=["data_mart"])
    id: str = Field(max_length=LONGEST, examples=["Sales"])
    properties: dict[str, Any] = Field({})


class ResourceType(LooseInput):
    """The kind of resources to search."""

    type: str = Field(max_length=LONGEST, examples=["data_mart"])


class PageIn(LooseInput):
    """The requested page of results."""

    token: str | None = Field(None, max_length=4000)
    limit: int = Field(50, ge=0, le=10_000)


class Evaluation(LooseInput):
    """A question."""

    subject: SubjectIn
    action: ActionIn
    resource: ResourceIn
    context: dict[str, Any] = Field({})


class PartialEvaluation(LooseInput):
    """One of several questions; omitted fields come from the request."""

    subject: SubjectIn | None = None
    action: ActionIn | None = None
    resource: ResourceIn | None = None
    context: dict[str, Any] | None = None


class Options(LooseInput):
    """How several questions are evaluated."""

    evaluations_semantic: Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"] = "execute_all"


class Evaluations(PartialEvaluation):
    """Several questions."""

    evaluations: list[PartialEvaluation] = Field([], max_length=MAX_EVALUATIONS)
    options: Options = Options()


class DecisionOut(BaseModel):
    """A decision."""

    leave_out_none: ClassVar[bool] = True

    decision: bool
    context: dict[str, Any] | None = None


class EvaluationsOut(BaseModel):
    """Decisions in the order of the questions, or the single decision of a single question."""

    leave_out_none: ClassVar[bool] = True

    decision: bool | None = None
    context: dict[str, Any] | None = None
    evaluations: list[DecisionOut] | None = None


class SearchSubject(LooseInput):
    """Search who can do an action on a resource."""

    subject: SubjectType
    action: ActionIn
    resource: ResourceIn
    page: PageIn = PageIn()


class SearchResource(LooseInput):
    """Search on which resources a subject can do an action."""

    subject: SubjectIn
    action: ActionIn
    resource: ResourceType
    page: PageIn = PageIn()


class SearchAction(LooseInput):
    """Search which actions a subject has on a resource."""

    subject: SubjectIn
    resource: ResourceIn
    page: PageIn = PageIn()


class PageOut(BaseModel):
    """The cursor of the next page; empty at the end."""

    next_token: str = ""
    count: int


class SubjectsOut(BaseModel):
    """Members found by a search."""

    page: PageOut
    results: list[dict[str, str]] = Field(examples=[[{"type": "member", "id": "mbr_01k6x3v9c2m4n8p0q7rs"}]])


class ResourcesOut(BaseModel):
    """Resources found by a search."""

    page: PageOut
    results: list[dict[str, str]] = Field(examples=[[{"type": "data_mart", "id": "dm_01k6x3v9c2m4n8p0q7rs"}]])


class ActionsOut(BaseModel):
    """Actions found by a search."""

    page: PageOut
    results: list[dict[str, str]] = Field(examples=[[{"name": "see"}]])


class Metadata(BaseModel):
    """The URLs of the endpoints."""

    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str
    search_subject_endpoint: str
    search_resource_endpoint: str
    search_action_endpoint: str
