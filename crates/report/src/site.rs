//! Static pages of the published record: the matrix, the requirements, and a page for each client, requirement, scenario and
//! failure. A pure function of the record.
//!
//! Each page is one file that requests nothing and is complete without JavaScript: its Content-Security-Policy allows one
//! style sheet by hash, and on pages with a timeline one script. `maud` escapes all text. The timeline of a failure is drawn by
//! [`html`](crate::html), as in reports of runs.

mod client;
mod failure;
mod index;
mod layout;
mod requirement;
mod requirements;
mod scenario;

use crate::published::Published;

/// A file of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Path in the site, with slashes: `clients/kopf.html`.
    pub path: String,
    /// Its text.
    pub html: String,
}

/// Returns all pages, in a fixed order.
pub fn pages(published: &Published) -> Vec<Page> {
    let suite = published.digest();
    let mut pages = vec![index::page(published, &suite), requirements::page(published)];
    pages.extend(
        published
            .clients
            .iter()
            .map(|one| client::page(published, &suite, one)),
    );
    let requirements = fake_apiserver::scenario::catalogue::requirements();
    pages.extend(requirements.iter().map(|one| requirement::page(published, one)));
    let scenarios = published.scenarios.iter();
    pages.extend(scenarios.map(|(one, text)| scenario::page(published, one, text)));
    for client in &published.clients {
        for (id, test) in client.failures() {
            if let Some((scenario, text)) = published.scenario(id) {
                pages.push(failure::page(client, test, scenario, text));
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests;
