"""Sphinx's settings of the site. scripts/docs gives the version and the folder of Doxygen's XML."""
import pathlib
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

project = "Torc"
copyright = "the authors of Torc, Apache-2.0"
extensions = ["myst_parser", "breathe"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["site", "files"]
smartquotes = False
primary_domain = "c"
highlight_language = "none"
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
breathe_projects = {}
breathe_default_project = "torc"
breathe_domain_by_extension = {"h": "c"}
html_theme = "furo"
html_static_path = ["torc.css", "torc.js"]
html_css_files = ["torc.css"]
html_js_files = ["torc.js"]
html_copy_source = False
html_show_sphinx = False
# Summaries of hits are fetched, which browsers refuse for pages of file://.
html_show_search_summary = False

# Debian 12's furo has its dark colours only behind the button. Here they also follow the reader's system.
DARK = {
    "color-problematic": "#ee5151",
    "color-foreground-primary": "#e3e3e6",
    "color-foreground-secondary": "#a7abb0",
    "color-foreground-muted": "#8b9097",
    "color-foreground-border": "#666666",
    "color-background-primary": "#131416",
    "color-background-secondary": "#1a1c1e",
    "color-background-hover": "#212427",
    "color-background-hover--transparent": "#21242700",
    "color-background-border": "#303335",
    "color-background-item": "#444444",
    "color-brand-primary": "#5aa7f5",
    "color-brand-content": "#6cb2f7",
    "color-highlighted-background": "#083563",
    "color-highlight-on-target": "#333300",
    "color-card-border": "#1a1c1e",
    "color-card-background": "#18181a",
    "color-api-name": "#ff9a8f",
    "color-api-pre-name": "#ff9a8f",
    "color-inline-code-background": "#1f2225",
}
html_theme_options = {"dark_css_variables": DARK}


class LinkNames(SphinxPostTransform):
    """A name of the API in a page (`torc_unary`) leads to its contract."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs):
        for node in list(self.document.findall(nodes.literal)):
            name = re.fullmatch(r"(?:struct |enum )?((?:torc|TORC)_\w+)(?:\(\))?", node.astext())
            if name and not isinstance(node.parent, (nodes.reference, addnodes.pending_xref)):
                link = addnodes.pending_xref("", refdomain="c", reftype="identifier", reftarget=name[1], refwarn=False,
                                             refdoc=self.env.docname)
                node.replace_self(link)
                link += node


class BreakWords(SphinxPostTransform):
    """Long words in tables, names of tests and of options above all, may break behind a slash or an underscore."""

    default_priority = 900

    def run(self, **kwargs):
        if self.app.builder.format != "html":
            return
        for text in [text for entry in self.document.findall(nodes.entry) for text in entry.findall(nodes.Text)]:
            if not re.search(r"\S{16,}", text):
                continue
            parts = re.split(r"(?<=[/_])(?=\w)", text)
            pieces = [piece for part in parts for piece in (nodes.raw("", "<wbr>", format="html"), nodes.Text(part))]
            text.parent.replace(text, pieces[1:])


def without_import(app, error):
    """Debian 12's furo imports a file of the web server. What the site needs of it is in torc.css."""
    sheet = pathlib.Path(app.outdir, "_static", "styles", "furo.css")
    if not error:
        sheet.write_text(re.sub(r"@import url\([^)]*\);", "", sheet.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app):
    app.add_post_transform(LinkNames)
    app.add_post_transform(BreakWords)
    app.connect("build-finished", without_import)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
