//! Links of static pages: each leads to a page of the site, to a place on it, or is one that a reader follows to a public issue.

use std::collections::{BTreeMap, BTreeSet};

use report::site::Page;

/// Addresses outside of the site that a link may have.
const OUTSIDE: &str = "https://";

/// Returns the links without target, and whatever a page would load.
pub(super) fn broken(pages: &[Page]) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<&str>> = pages
        .iter()
        .map(|page| (page.path.as_str(), values(&page.html, "id").collect()))
        .collect();
    let mut broken = Vec::new();
    for page in pages {
        broken.extend(values(&page.html, "src").map(|to| format!("{}: loads {to}", page.path)));
        if own(&page.html).contains("<link") {
            broken.push(format!("{}: loads a resource", page.path));
        }
        for to in values(&page.html, "href").filter(|to| !to.starts_with(OUTSIDE)) {
            let (path, fragment) = to.split_once('#').unwrap_or((to, ""));
            let path = if path.is_empty() {
                page.path.clone()
            } else {
                resolved(&page.path, path)
            };
            let has = |anchors: &BTreeSet<&str>| fragment.is_empty() || anchors.contains(fragment);
            if !anchors.get(path.as_str()).is_some_and(has) {
                broken.push(format!("{}: no target of {to}", page.path));
            }
        }
    }
    broken
}

/// Returns the path that a relative one names on a page.
fn resolved(page: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Returns a page without its style and script, which a test of the report reads.
fn own(html: &str) -> &str {
    let body = html.find("</style>").map_or(html, |at| &html[at..]);
    body.find("<script>").map_or(body, |at| &body[..at])
}

/// Returns the values of an attribute. Pages have double quotes, and none inside of a value.
fn values<'p>(html: &'p str, attribute: &str) -> impl Iterator<Item = &'p str> {
    let start = format!(" {attribute}=\"");
    let mut left = own(html);
    std::iter::from_fn(move || {
        let at = left.find(&start)? + start.len();
        let end = at + left[at..].find('"')?;
        let value = &left[at..end];
        left = &left[end..];
        Some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, html: &str) -> Page {
        Page {
            path: path.to_owned(),
            html: html.to_owned(),
        }
    }

    #[test]
    fn links_lead_to_pages_and_places() {
        let pages = [
            page("index.html", r#"<a href="a/b.html#x">"#),
            page(
                "a/b.html",
                r#"<p id="x"><a href="../index.html"><a href="\#x"><a href="https://example.org/">"#
                    .replace('\\', "")
                    .as_str(),
            ),
        ];
        assert_eq!(broken(&pages), Vec::<String>::new());
    }

    #[test]
    fn a_link_without_target_and_what_is_loaded_is_reported() {
        let pages = [page(
            "a/b.html",
            r#"<a href="c.html"><a href="b.html#y"><a href="javascript:x"><img src="https://x.org/1"><link>"#,
        )];
        assert_eq!(
            broken(&pages),
            [
                "a/b.html: loads https://x.org/1",
                "a/b.html: loads a resource",
                "a/b.html: no target of c.html",
                "a/b.html: no target of b.html#y",
                "a/b.html: no target of javascript:x"
            ]
        );
    }
}
