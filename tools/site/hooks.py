"""What MkDocs is told of the docs: their index is the navigation, and links out of docs/ lead to the repository."""

import posixpath
import re

REPOSITORY = "https://github.com/makegood-dev/makegood/blob/main/"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_config(config):
    with open(posixpath.join(config.docs_dir, "README.md"), encoding="utf-8") as index:
        config.nav = navigation(index.read())
    return config


def navigation(index):
    """The sections of the index, each with the first link of its lines to a page of the site."""
    sections = [{"Documentation": "README.md"}]
    for part in index.split("\n## ")[1:]:
        heading = part.splitlines()[0]
        pages = re.findall(r"^- .*?\[([^\]]+)\]\((?!\.\./)([^)#:]+\.md)\)", part, re.MULTILINE)
        more = re.findall(r"\[([^\]]+)\]\((reference/[^)#:]+\.md)\)", part)
        sections.append({heading: [{title: page} for title, page in dict.fromkeys(pages + more)]})
    return sections


# The theme's darkmode.js switches the style sheets of highlight.js, whether the site has them or not: without them it stops at its first line.
STYLES = '<style id="hljs-light"></style><style id="hljs-dark"></style></head>'


def on_post_page(output, **_):
    """Gives a page what its scripts look for."""
    return output.replace("</head>", STYLES, 1)


def on_post_template(output_content, template_name, **_):
    """The same for the page that is shown where there is none."""
    return on_post_page(output_content) if template_name.endswith(".html") else output_content


def on_page_markdown(markdown, page, **_):
    """Links to files that are no part of the site."""

    def lead_out(link):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[1]))
        if "://" in link[1] or link[1].startswith("mailto:"):
            return link[0]
        if target.startswith("docs/"):
            return link[0]
        return f"]({REPOSITORY}{target}{link[2] or ''})"

    parts = CODE.split(markdown)
    return "".join(part if n % 2 else LINK.sub(lead_out, part) for n, part in enumerate(parts))
