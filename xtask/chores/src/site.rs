//! `cargo xtask site`: writes the published record of all clients as static pages into target/site.
//!
//! The pages are a pure function of files of the repository; here they are read, written and checked. It must not know what a
//! page looks like.

mod links;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use e2e::adapters::Registry;
use report::site::{Page, pages};

use crate::clients;
use crate::conformance::gather::gather;

/// Bytes of one page.
const PAGE_MAX: usize = 300 * 1024;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder to write into; its earlier pages are removed.
    #[arg(long, value_name = "FOLDER", default_value = "target/site")]
    to: PathBuf,
}

/// Exit code 0: written; 1: a page is too large, or a link has no target; 2: the record has mistakes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match site(&arguments.to) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            wrong.iter().for_each(|line| note(line));
            ExitCode::FAILURE
        }
        Err(problem) => {
            note(&problem);
            ExitCode::from(clients::USAGE)
        }
    }
}

/// Writes the site; returns what is wrong with it.
fn site(to: &Path) -> Result<Vec<String>, String> {
    let root = clients::root();
    let gathered = gather(&root, &Registry::read(&root)?)?;
    let pages = pages(&gathered.published);
    write(&root.join(to), &pages)?;
    let bytes: usize = pages.iter().map(|page| page.html.len()).sum();
    note(&format!(
        "{} pages, {} MB, in {}",
        pages.len(),
        bytes / 1_000_000,
        to.display()
    ));
    let mut wrong = gathered.wrong;
    wrong.extend(faults(&pages));
    Ok(wrong)
}

/// Returns what is wrong with pages: too large, or a link without target.
fn faults(pages: &[Page]) -> Vec<String> {
    let large = pages.iter().filter(|page| page.html.len() > PAGE_MAX);
    let large = large.map(|page| format!("{}: {} bytes, at most {PAGE_MAX}", page.path, page.html.len()));
    large.chain(links::broken(pages)).collect()
}

fn write(folder: &Path, pages: &[Page]) -> Result<(), String> {
    let wrong = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    // A page of an earlier record would stay.
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(folder, error)),
        Ok(()) | Err(_) => {}
    }
    for page in pages {
        let path = folder.join(&page.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| wrong(parent, error))?;
        std::fs::write(&path, &page.html).map_err(|error| wrong(&path, error))?;
    }
    Ok(())
}

fn note(line: &str) {
    let _closed_pipe = writeln!(io::stderr(), "site: {line}");
}

#[cfg(test)]
mod tests {
    use e2e::toolchain;
    use report::published::Published;

    use super::*;

    fn committed() -> Published {
        let root = clients::root();
        let gathered = gather(&root, &Registry::read(&root).unwrap()).unwrap();
        assert_eq!(gathered.wrong, Vec::<String>::new());
        gathered.published
    }

    /// A failure of the record that has evidence, or has none.
    fn failure(published: &Published, evidence: bool) -> Option<String> {
        let clients = published.clients.iter();
        let mut all = clients.flat_map(|client| client.failures().map(move |failure| (client, failure)));
        let found = all.find(|(_, (_, test))| test.evidence.is_some() == evidence);
        found.map(|(client, (id, _))| failure_page(&client.name, id))
    }

    /// Path of a failure's page.
    fn failure_page(client: &str, id: &str) -> String {
        format!("failures/{client}/{}.html", id.replace('/', "."))
    }

    #[test]
    fn the_pages_of_the_committed_record_are_small_and_their_links_have_targets() {
        let published = committed();
        let pages = pages(&published);
        assert_eq!(faults(&pages), Vec::<String>::new());
        let failures: usize = published
            .clients
            .iter()
            .map(|client| client.failures().count())
            .sum();
        let of_failures = pages
            .iter()
            .filter(|page| page.path.starts_with("failures/"))
            .count();
        assert!(
            failures > 0 && of_failures == failures,
            "{of_failures} of {failures}"
        );
    }

    #[test]
    fn the_page_of_each_charge_has_the_source_that_causes_it() {
        let published = committed();
        let pages = pages(&published);
        let mut charged = 0;
        for client in published.clients.iter().filter(|client| !client.is_own) {
            for (id, test) in client.failures().filter(|(_, test)| !test.broken.is_empty()) {
                let path = failure_page(&client.name, id);
                let page = pages
                    .iter()
                    .find(|page| page.path == path)
                    .expect("each failure has a page");
                let source = &test.known.as_ref().expect("each failure has a reason").source;
                assert!(source.lines.is_empty() != source.none.is_empty(), "{path}");
                assert!(page.html.contains("id=\"source\""), "{path}");
                for lines in &source.lines {
                    assert!(
                        page.html.contains(&format!("href=\"{}\"", lines.url)),
                        "{path}: {}",
                        lines.url
                    );
                }
                charged += 1;
            }
        }
        assert!(charged > 500, "{charged} charges");
    }

    #[test]
    fn a_page_that_is_too_large_is_reported() {
        let page = Page {
            path: "a.html".to_owned(),
            html: "x".repeat(PAGE_MAX + 1),
        };
        assert_eq!(faults(&[page]), ["a.html: 307201 bytes, at most 307200"]);
    }

    #[test]
    fn the_pages_are_read_in_a_browser() {
        let Some(mut browser) = toolchain::or_skip(toolchain::browser("site.mjs")) else {
            return;
        };
        // With all clients the check of the index would take minutes.
        let mut published = committed();
        published.clients.truncate(3);
        let mut failing = published
            .clients
            .iter_mut()
            .filter(|client| client.failures().next().is_some());
        let last = failing.next_back().expect("a client that fails something");
        last.tests.values_mut().for_each(|test| test.evidence = None);
        let program = std::env::current_exe().unwrap();
        let folder = program.ancestors().nth(2).unwrap().join("site");
        let screenshots = folder.with_file_name("site-screenshots");
        write(&folder, &pages(&published)).unwrap();
        std::fs::create_dir_all(&screenshots).unwrap();
        let with_evidence = failure(&published, true).expect("evidence is committed");
        let mut paths = vec![
            "index.html".to_owned(),
            "requirements.html".to_owned(),
            "clients/kube-runtime.html".to_owned(),
            "requirements/WATCH-03.html".to_owned(),
            "scenarios/decode.a-deletion-that-cannot-be-decoded-is-not-skipped.html".to_owned(),
        ];
        paths.push(failure(&published, false).expect("it was removed"));
        paths.push(with_evidence);
        let output = browser
            .arg(&folder)
            .arg(&screenshots)
            .args(&paths)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{}", text.join(""));
        assert_eq!(text[0].matches("ok ").count(), 5 * paths.len() + 2, "{}", text[0]);
    }
}
