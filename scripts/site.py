"""What mkdocs.yml adds to MkDocs: the pages link to files of the repository, which the site does not have, and to folders, which
GitHub shows by their README."""

import posixpath
import re

BLOB = "https://github.com/tidemarkhq/tidemark/blob/main/"
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown, page, **_):
    here = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def outside(match):
        target = posixpath.normpath(posixpath.join(here, match[1]))
        if target.startswith("docs/") and posixpath.splitext(target)[1]:
            return match[0]
        return f"]({BLOB}{target}{match[2] or ''})"

    return LINK.sub(outside, markdown)
