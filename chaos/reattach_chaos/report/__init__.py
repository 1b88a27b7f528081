"""What a person, a program or a build server is shown of a run of cases. See README.md."""

from reattach_chaos.report.data import as_json
from reattach_chaos.report.junit import as_junit
from reattach_chaos.report.page import as_page
from reattach_chaos.report.screen import as_text, last_line
from reattach_chaos.report.suite import Played, Suite

__all__ = ["Played", "Suite", "as_json", "as_junit", "as_page", "as_text", "last_line"]
