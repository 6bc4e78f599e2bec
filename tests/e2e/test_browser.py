"""N10: the web page in a real Chromium: seen, corrected, attacked, by keyboard, on a phone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

import recollect
from recollect.types.access import Scope
from tests.e2e.browsing import found_browser, launched, served, sign_in
from tests.e2e.web_examples import PAYLOAD, hostile
from tests.e2e.web_world import PagedWorld

PHONE = ViewportSize(width=390, height=800)
WAIT = 10_000
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

# What a page owes those who do not see it, or use no mouse.
EXAMINED = """() => {
  const problems = [];
  const named = (each) => each.labels?.length || each.getAttribute("aria-label") || each.title;
  for (const each of document.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    if (!named(each)) problems.push("no label: " + each.outerHTML);
  }
  for (const each of document.querySelectorAll("a, button, summary")) {
    if (!each.textContent.trim() && !named(each)) problems.push("no words: " + each.outerHTML);
  }
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push("twice: " + id);
  if (document.querySelectorAll("main").length !== 1) problems.push("not one main");
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title.trim()) problems.push("no title");
  const sizes = [...document.querySelectorAll("h1, h2, h3")].map((each) => +each.tagName[1]);
  if (sizes[0] !== 1) problems.push("does not begin with an h1");
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th[scope]")) problems.push("a table without headers");
  }
  return problems;
}"""


@pytest.fixture(scope="module")  # while it runs, no other event loop can in this thread
def browser() -> Iterator[Browser]:
    executable = found_browser()
    if executable is None:
        assert not os.environ.get("CI"), "CI is set, and there is no browser"
        pytest.skip("there is no Chromium here: install it, or name one in RECOLLECT_BROWSER")
    with launched(executable) as running:
        yield running


@dataclass(slots=True)
class Visit:
    """A page of a served memory, and whatever a browser complained about on it."""

    world: PagedWorld
    url: str
    page: Page
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}/ui{path}")
        return self.page


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PagedWorld, str]]:
    directory: Path = tmp_path_factory.mktemp("pages")
    with recollect.open(directory / "memory.db") as memory, served(memory) as url:
        world = PagedWorld(memory)
        world.fill("home", "heron")
        hostile(world)
        yield world, url


def visit(stage: tuple[PagedWorld, str], context: BrowserContext) -> Visit:
    world, url = stage
    page = context.new_page()
    page.set_default_timeout(WAIT)
    made = Visit(world, url, page)
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on("dialog", lambda dialog: made.complaints.append(f"a dialog: {dialog.message}"))
    page.on(
        "console",
        lambda said: made.complaints.append(said.text) if said.type == "error" else None,
    )
    sign_in(page, url, world.key())
    return made


@pytest.fixture
def visitor(browser: Browser, stage: tuple[PagedWorld, str]) -> Iterator[Visit]:
    with browser.new_context() as context:
        made = visit(stage, context)
        yield made
        assert made.complaints == []


def test_a_person_sees_a_fact_its_source_and_its_history_and_corrects_it(visitor: Visit) -> None:
    page = visitor.go("/s/home/facts")
    page.get_by_role("link", name="heron tea").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("heron tea")
    expect(page.locator("blockquote").first).to_contain_text("I prefer heron tea")
    page.get_by_role("link", name=re.compile(r", record \d")).first.click()
    expect(page.locator("[id^=record-]", has_text="I prefer heron tea over coffee")).to_be_visible()
    page.go_back()
    page.get_by_text("Change it").click()
    page.get_by_label("Statement").fill("Heron prefers green tea.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("It is yours from now on")
    expect(page.get_by_role("heading", level=1)).to_have_text("Heron prefers green tea.")
    expect(page.get_by_role("table")).to_contain_text("edited")
    page.get_by_text("Delete…").click()
    page.get_by_role("button", name="Delete this fact").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This fact was deleted")
    held = visitor.world.memory.space("home")
    assert "green tea" not in [fact.content for fact in held.facts.list(100)]


def test_an_order_from_a_web_page_is_let_in_or_not_by_a_person(visitor: Visit) -> None:
    held = visitor.world.memory.space("home")
    first, second = (held.facts.get(visitor.world.doubted("home")) for _ in range(2))
    assert first
    assert second
    page = visitor.go("/s/home/review")
    page.locator("li", has_text=first.content).get_by_role(
        "button", name="Accept", exact=True
    ).click()
    expect(page.get_by_role("status")).to_contain_text("Accepted")
    page.locator("li", has_text=second.content).get_by_role("button", name="Reject").click()
    expect(page.get_by_role("status")).to_contain_text("Rejected")
    approved = held.facts.get(first.id)
    assert approved is not None
    assert (approved.trust.value, held.facts.get(second.id)) == ("user", None)


def test_a_document_is_written_and_nobody_overwrites_anybody(visitor: Visit) -> None:
    path = visitor.world.document("home")
    page = visitor.go(f"/s/home/documents/edit?path={path}")
    documents = visitor.world.memory.space("home").documents
    documents.write(path, "what somebody else wrote meanwhile")
    page.locator("#body").fill("# Mine\n\nwith **weight** and [[~/memory/notes/heron|a link]]")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("what somebody else wrote meanwhile")
    assert documents.read(path).body == "what somebody else wrote meanwhile"
    expect(page.locator("#body")).to_have_value(re.compile("Mine"))
    visitor.complaints.clear()  # the browser tells of the 409, which is meant
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article strong")).to_have_text("weight")
    page.get_by_role("link", name="a link", exact=True).click()
    expect(page.locator("article")).to_contain_text("About heron")
    page.go_back()
    page.get_by_role("link", name="last change").click()
    expect(page.locator(".diff .add").first).to_contain_text("Mine")
    expect(page.locator(".diff .gone").first).to_contain_text("somebody else")


def test_a_recalled_thing_says_why(visitor: Visit) -> None:
    page = visitor.go("/s/home/recall")
    page.get_by_label("Question").fill("which move in May?")
    page.keyboard.press("Enter")
    first = page.locator("#hits ol li").first
    expect(first).to_contain_text("moved")
    expect(first).to_contain_text("has the words of the query")
    expect(page.locator("#hits pre")).to_contain_text("recollect-memory")
    assert "q=which" in page.url  # it can be shared, and gone back to


def test_a_page_that_is_open_shows_what_happens(visitor: Visit) -> None:
    """Nobody has to load it again."""
    page = visitor.go("/s/live")
    expect(page.locator("html[data-live=yes]")).to_be_attached()
    expect(page.locator("#overview")).to_contain_text("Nothing is remembered yet")
    held = visitor.world.memory.space("live")
    session = held.session("chat")
    session.append("user", "I live in Tartu now.")
    session.sleep()
    visitor.world.memory.work(all=True)
    expect(page.locator("#overview")).to_contain_text("Tartu")
    expect(page.locator("#overview")).to_contain_text("chat")


def test_a_list_that_was_filtered_stays_so_when_something_changes_and_goes_back_whole(
    visitor: Visit,
) -> None:
    page = visitor.go("/s/home/facts")
    expect(page.locator("html[data-live=yes]")).to_be_attached()
    held = visitor.world.memory.space("home")
    held.facts.add("The kingfisher dives.")
    expect(page.locator("#facts")).to_contain_text("The kingfisher dives")
    page.locator("#q").fill("kingfisher")
    expect(page.locator("#facts li")).to_have_count(1)
    held.facts.add("The lapwing calls.")
    held.facts.add("A second kingfisher came.")
    expect(page.locator("#facts")).to_contain_text("A second kingfisher came")
    expect(page.locator("#facts li")).to_have_count(2)
    page.go_back()
    expect(page.locator("#facts")).to_contain_text("The lapwing calls")
    expect(page.get_by_role("heading", level=1)).to_have_text("Facts")
    expect(page.locator("#q")).to_have_value("")


# A browser without a screen hides no tab, and has no more than six connections to one server.
HIDDEN = """(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_many_tabs_may_be_open_and_the_one_that_is_looked_at_is_current(visitor: Visit) -> None:
    first = visitor.go("/s/tabs")
    expect(first.locator("html[data-live=yes]")).to_be_attached()
    for _ in range(8):
        tab = first.context.new_page()
        tab.set_default_timeout(WAIT)
        tab.goto(f"{visitor.url}/ui/s/tabs")
        expect(tab.locator("html[data-live=yes]")).to_be_attached()
        tab.evaluate(HIDDEN, True)
    first.evaluate(HIDDEN, True)
    visitor.world.memory.space("tabs").facts.add("The owl sleeps.")
    first.evaluate(HIDDEN, False)
    expect(first.locator("#overview")).to_contain_text("The owl sleeps")


def test_nothing_that_a_memory_says_acts(visitor: Visit) -> None:
    """P12: markup in every field of everything, on every page that shows it."""
    for path in hostile(visitor.world, "hostile").values():
        page = visitor.go(path.removeprefix("/ui"))
        expect(page.locator("main")).to_contain_text(PAYLOAD[:20])
        assert page.locator("b-evil, main img, main script, [onload], [onerror]").count() == 0, path
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_everything_can_be_reached_by_keyboard(visitor: Visit) -> None:
    page = visitor.go("/s/home/facts")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("blue")
    page.keyboard.press("Enter")
    expect(page.locator("#hits li").first).to_contain_text("is blue")
    for _ in range(20):
        page.keyboard.press("Tab")
        if "/facts/" in (page.locator(":focus").get_attribute("href") or ""):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("is blue")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_for_everybody_and_for_phones(
    browser: Browser, stage: tuple[PagedWorld, str], scheme: Scheme
) -> None:
    with browser.new_context(viewport=PHONE, color_scheme=scheme, has_touch=True) as context:
        made = visit(stage, context)
        paths = ["/spaces", "/keys", *(each[3:] for each in hostile(stage[0], "hostile").values())]
        for path in [*paths, "/s/home/generations", "/s/home/generations/1", "/s/home/jobs"]:
            page = made.go(path)
            assert page.evaluate(EXAMINED) == [], path
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        lightness = sum(int(each) for each in re.findall(r"\d+", ground)[:3]) / 3
        assert (lightness > 128) == (scheme == "light")
        assert made.complaints == []


def test_everything_works_without_scripts(browser: Browser, stage: tuple[PagedWorld, str]) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        made = visit(stage, context)
        page = made.go("/s/home/facts")
        page.locator("#q").fill("blue")
        page.locator("#q").press("Enter")
        expect(page.locator("#facts li")).to_have_count(1)
        page.get_by_role("link", name="is blue").click()
        page.locator("summary", has_text="Change it").click()
        page.get_by_label("Statement").fill("The heron is blue-grey.")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("It is yours")
        page.get_by_role("button", name="Sign out").click()
        assert page.url.endswith("/ui/sign-in")
        page.go_back()
        assert "/sign-in" in page.url or "blue-grey" not in page.content()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker of accessibility, which comes as a package of npm."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        assert not os.environ.get("CI"), "CI is set, and there is no npm"
        pytest.skip("there is no npm here to install the checker of accessibility")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "axe-core@4.11.0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"npm cannot install the checker: {done.stderr.strip()[-300:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


FOUND = """axe.run().then(({ violations }) => violations.map(
  ({ id, nodes }) => id + ": " + nodes.slice(0, 3).map((each) => each.html).join(" | ")))"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_stands_in_the_way_of_people_with_assistive_technology(
    browser: Browser, stage: tuple[PagedWorld, str], scheme: Scheme, axe: str
) -> None:
    with browser.new_context(color_scheme=scheme) as context:
        made = visit(stage, context)
        paths = ["/spaces", "/keys", *(each[3:] for each in hostile(stage[0], "hostile").values())]
        for path in [*paths, "/s/home", "/s/home/generations/1", "/s/home/jobs"]:
            page = made.go(path)
            page.evaluate(axe)
            assert page.evaluate(FOUND) == [], path


def test_a_key_is_made_shown_once_and_revoked(visitor: Visit) -> None:
    page = visitor.go("/keys")
    page.get_by_text("Make a key").click()
    page.get_by_label("Name").fill("for a phone")
    page.get_by_label("Space").fill("home")
    page.get_by_role("button", name="Make it").click()
    secret = page.locator("#secret").inner_text()
    spaces, bearer = f"{visitor.url}/v1/spaces", {"Authorization": f"Bearer {secret}"}
    assert httpx2.get(spaces, headers=bearer).json()["spaces"] == [{"name": "home"}]
    visitor.go("/keys")
    assert secret not in page.content()
    row = page.locator("tr", has_text="for a phone")
    row.get_by_text("Revoke…").click()
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("status")).to_contain_text("revoked")
    assert httpx2.get(spaces, headers=bearer).status_code == 401


def test_a_read_key_sees_everything_and_is_offered_nothing(
    browser: Browser, stage: tuple[PagedWorld, str]
) -> None:
    world, url = stage
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        sign_in(page, url, world.key("home", Scope.READ))
        for tab in ("Sessions", "Facts", "Review", "Pages", "Generations", "Activity"):
            page.get_by_role("link", name=tab, exact=True).first.click()
            expect(page.get_by_role("heading", level=1).first).to_be_visible()
            forms = page.locator("main form[method=post]")
            expect(forms).to_have_count(0)
        page.goto(f"{url}/ui/s/hostile")
        expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
