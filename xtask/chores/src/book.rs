//! `cargo xtask book`: checks the links of every Markdown file, and builds the documentation as a book with mdBook.
//!
//! `docs/SUMMARY.md` orders the pages, including those outside `docs/`. All are copied into one folder, because mdBook
//! reads no other; a link to a file that is not a page points to the repository instead.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::clients::root;

/// Order of the pages.
const SUMMARY: &str = "docs/SUMMARY.md";

/// URL prefix for files that are not pages.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Folder of the built book.
const TARGET: &str = "target/book";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only check the links; mdBook is not needed.
    #[arg(long)]
    check: bool,
}

/// Exit code 0: no link is broken, and the book is built; 1: a link is broken, or a page is in no chapter; 3: mdBook is
/// missing or fails.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let pages = match read() {
        Ok(pages) => pages,
        Err(problem) => {
            eprintln!("book: {problem}");
            return ExitCode::from(3);
        }
    };
    let broken = broken(&pages, &|path| root().join(path).exists());
    for line in &broken {
        eprintln!("book: {line}");
    }
    if !broken.is_empty() {
        return ExitCode::FAILURE;
    }
    if arguments.check {
        return ExitCode::SUCCESS;
    }
    match build(&pages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("book: {problem}");
            ExitCode::from(3)
        }
    }
}

/// Returns every tracked Markdown file by its path.
fn read() -> Result<BTreeMap<String, String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(root())
        .output()
        .map_err(|why| format!("cannot run git: {why}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", listed.status));
    }
    let mut pages = BTreeMap::new();
    for path in String::from_utf8_lossy(&listed.stdout).lines() {
        // A file may be deleted and not yet committed.
        if let Ok(text) = std::fs::read_to_string(root().join(path)) {
            pages.insert(path.to_owned(), text);
        }
    }
    Ok(pages)
}

/// A link to a file of the repository.
struct Link {
    /// Path in the repository; the page's own path for an anchor alone.
    path: String,
    /// Text after `#`.
    anchor: Option<String>,
    /// Position of the destination in the page's text.
    at: Range<usize>,
}

/// Returns the links of the page at `path`, without those to other sites and those of rustdoc (`crate::Config`), which
/// pages included in the API documentation have.
fn links(path: &str, text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
            continue;
        };
        if dest_url.contains("::") || dest_url.contains("://") || dest_url.starts_with("mailto:") {
            continue;
        }
        let Some(offset) = text[range.clone()].rfind(dest_url.as_ref()) else {
            continue;
        };
        let start = range.start + offset;
        let (file, anchor) = match dest_url.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor.to_owned())),
            None => (dest_url.as_ref(), None),
        };
        let file = match file {
            "" => path.to_owned(),
            file => joined(path, file),
        };
        found.push(Link {
            path: file,
            anchor,
            at: start..start + dest_url.len(),
        });
    }
    found
}

/// Resolves `link`, written in the file `from`, without `.` and `..`.
fn joined(from: &str, link: &str) -> String {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let mut parts: Vec<&OsStr> = Vec::new();
    let path = folder.join(link);
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::ParentDir if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            Component::ParentDir => parts.push(OsStr::new("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts.iter().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Returns the anchors of a page's headings, as GitHub and mdBook name them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        if let Event::Start(Tag::Heading { .. }) = event {
            heading = Some(String::new());
        } else if let (Event::Text(part) | Event::Code(part), Some(heading)) = (&event, &mut heading) {
            heading.push_str(part);
        } else if let Event::End(TagEnd::Heading(_)) = event {
            let name = slug(&heading.take().unwrap_or_default());
            let nth = (1..).map(|nth| format!("{name}-{nth}"));
            let free = std::iter::once(name.clone())
                .chain(nth)
                .find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// Returns the broken links of `pages`, one per line.
fn broken(pages: &BTreeMap<String, String>, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in pages {
        for link in links(path, text) {
            let line = text[..link.at.start].lines().count();
            let dest = &text[link.at.clone()];
            if !exists(&link.path) {
                broken.push(format!("{path}:{line}: {dest}: there is no {}", link.path));
                continue;
            }
            let (Some(anchor), Some(target)) = (&link.anchor, pages.get(&link.path)) else {
                continue;
            };
            if !anchors(target).contains(anchor) {
                broken.push(format!(
                    "{path}:{line}: {dest}: {} has no heading #{anchor}",
                    link.path
                ));
            }
        }
    }
    let chapters = chapters(pages);
    let missing = pages
        .keys()
        .filter(|path| path.starts_with("docs/") && *path != SUMMARY && !chapters.contains(*path));
    broken.extend(missing.map(|path| format!("{path}: is in no chapter of {SUMMARY}")));
    broken
}

/// Returns the pages of the book.
fn chapters(pages: &BTreeMap<String, String>) -> BTreeSet<String> {
    let summary = pages.get(SUMMARY).map(|text| links(SUMMARY, text));
    summary.into_iter().flatten().map(|link| link.path).collect()
}

/// Returns the path of a page in the book: relative to `docs/` for pages there, else as in the repository.
fn name(path: &str) -> &str {
    path.strip_prefix("docs/").unwrap_or(path)
}

/// Returns the text of a page for the book: links between chapters point to their copies, others to the repository.
fn rewritten(path: &str, text: &str, chapters: &BTreeSet<String>) -> String {
    let here = if path == SUMMARY { "SUMMARY.md" } else { name(path) };
    let up = "../".repeat(here.matches('/').count());
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for link in links(path, text) {
        if link.at.start < done {
            continue;
        }
        out.push_str(&text[done..link.at.start]);
        let anchor = link
            .anchor
            .as_ref()
            .map(|anchor| format!("#{anchor}"))
            .unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = match chapters.contains(&link.path) {
            _ if link.path == path => write!(out, "{anchor}"),
            true => write!(out, "{up}{}{anchor}", name(&link.path)),
            false if is_image(&link.path) => write!(out, "{up}{}", name(&link.path)),
            false => write!(out, "{REPOSITORY}{}{anchor}", link.path),
        };
        done = link.at.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Whether the file is an image, which is copied into the book.
fn is_image(path: &str) -> bool {
    path.ends_with(".png")
}

fn build(pages: &BTreeMap<String, String>) -> Result<(), String> {
    let target = root().join(TARGET);
    let source = target.join("src");
    let _was_not_there = std::fs::remove_dir_all(&source);
    let chapters = chapters(pages);
    for path in chapters.iter().map(String::as_str).chain([SUMMARY]) {
        let text = pages
            .get(path)
            .ok_or_else(|| format!("{SUMMARY} lists {path}, which is no page"))?;
        let to = source.join(if path == SUMMARY { "SUMMARY.md" } else { name(path) });
        let folder = to.parent().unwrap_or(&source);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&to, rewritten(path, text, &chapters)))
            .map_err(|why| format!("{}: {why}", to.display()))?;
        for image in links(path, text).iter().filter(|link| is_image(&link.path)) {
            let to = source.join(name(&image.path));
            std::fs::create_dir_all(to.parent().unwrap_or(&source))
                .and_then(|()| std::fs::copy(root().join(&image.path), &to))
                .map_err(|why| format!("{}: {why}", image.path))?;
        }
    }
    let settings = root().join("docs/book.toml");
    std::fs::copy(&settings, target.join("book.toml"))
        .map_err(|why| format!("{}: {why}", settings.display()))?;
    let built = Command::new("mdbook").arg("build").arg(&target).status();
    match built {
        Ok(status) if status.success() => {
            let page = target.join("html/index.html");
            let _closed_pipe = writeln!(io::stdout(), "{}", page.display());
            Ok(())
        }
        Ok(status) => Err(format!("mdbook: {status}")),
        Err(why) => Err(format!(
            "cannot run mdbook: {why}; install it: cargo install --locked mdbook"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        texts.iter().map(owned).collect()
    }

    #[test]
    fn broken_links_and_lost_pages_are_found() {
        let pages = pages(&[
            (
                "README.md",
                "# A `b` c\n\n[x](docs/a.md#two) [y](#a-b-c) [z](https://e.org/x)\n",
            ),
            ("docs/SUMMARY.md", "- [A](a.md)\n- [R](../README.md)\n"),
            (
                "docs/a.md",
                "# One\n\n## Two\n\n| a |\n|---|\n| [x](../gone.md) |\n\n[y](#three)\n",
            ),
            ("docs/lost.md", "# Lost\n"),
        ]);
        assert_eq!(
            broken(&pages, &|path| pages.contains_key(path)),
            [
                "docs/a.md:7: ../gone.md: there is no gone.md",
                "docs/a.md:9: #three: docs/a.md has no heading #three",
                "docs/lost.md: is in no chapter of docs/SUMMARY.md",
            ]
        );
    }

    #[test]
    fn links_point_to_chapters_or_to_the_repository() {
        let chapters = ["docs/a.md", "watcher/docs/g.md"].map(str::to_owned).into();
        assert_eq!(
            rewritten(
                "docs/a.md",
                "[g](../watcher/docs/g.md#x) [s](../scenarios/s.yaml) [h](#h)",
                &chapters
            ),
            format!("[g](watcher/docs/g.md#x) [s]({REPOSITORY}scenarios/s.yaml) [h](#h)")
        );
        assert_eq!(
            rewritten("watcher/docs/g.md", "[a](../../docs/a.md)", &chapters),
            "[a](../../a.md)"
        );
    }

    #[test]
    fn headings_of_one_name_are_numbered() {
        let anchors = anchors("# A, b!\n# A b\n");
        assert_eq!(anchors, ["a-b", "a-b-1"].map(str::to_owned).into());
    }
}
