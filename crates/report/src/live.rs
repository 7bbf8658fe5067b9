//! The live view of a running server: one HTML file with the components of the report, which reads the control API of the
//! server that it comes from. It must not know how it is served, nor what is served.
//!
//! The page requests nothing else: its policy allows one style sheet and one script by hash, and connections to its own server.

use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::html::{STYLE, keys_dialog, source_hash};

/// Bundled from `page/src` by `page/build.mjs`, with the licences of what it contains.
const SCRIPT: &str = include_str!("../page/dist/live.js");

/// What the live view has beside the look of the report.
const OWN_STYLE: &str = include_str!("../page/src/live.css");

/// The page, and the headers that it needs.
#[derive(Debug, Clone)]
pub struct Page {
    /// HTML.
    pub html: String,
    /// Value of Content-Security-Policy.
    pub policy: String,
}

/// What an action is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Open watches: all, those that the filter shows, or one.
    Watches,
    /// Watch caches: of all resources, or of the one that the filter shows.
    Caches,
    /// The server.
    Server,
}

impl Aim {
    fn word(self) -> &'static str {
        match self {
            Self::Watches => "watches",
            Self::Caches => "caches",
            Self::Server => "server",
        }
    }
}

/// A button.
#[derive(Debug, Clone)]
pub struct Button {
    /// Verb of `ctl`.
    pub verb: &'static str,
    /// What it does, in a sentence.
    pub words: &'static str,
    /// What it is for.
    pub aim: Aim,
    /// Path of the control API that it is sent to.
    pub path: &'static str,
    /// Body, as JSON; `$argument` is replaced.
    pub body: String,
    /// Default of its argument, and the name of it.
    pub argument: Option<(&'static str, &'static str)>,
}

/// Returns the page with these buttons.
pub fn page(buttons: &[Button]) -> Page {
    static STYLES: LazyLock<String> = LazyLock::new(|| format!("{STYLE}\n{OWN_STYLE}"));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        source_hash(&STYLES),
        source_hash(SCRIPT),
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "fake-apiserver, live" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLES.as_str())) }
            }
            body.live {
                a.skip href="#watches" { "Skip to watches" }
                (head())
                (toolbar())
                main {
                    (violations())
                    div.panes {
                        (watches())
                        (actions(buttons))
                        (timeline())
                        (events())
                        (history())
                    }
                }
                (help())
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Page {
        html: page.into_string(),
        policy,
    }
}

fn head() -> Markup {
    html! {
        header.top {
            h1 { "fake-apiserver" span #what.version {} }
            p #state.state role="status" { span #link.link { "connecting" } }
            dl #sums.sums {
                @for (id, name) in [
                    ("open", "watches open"), ("late", "behind"), ("stalled", "stalled"),
                    ("broken", "violations"), ("rules", "rules"), ("rate", "events/s"),
                ] {
                    div id={ "sum-" (id) } { dt { (name) } dd { "–" } }
                }
            }
        }
        noscript { p.note { "The live view needs JavaScript: it reads the control API." } }
    }
}

fn toolbar() -> Markup {
    html! {
        form #toolbar role="search" aria-label="What is shown" {
            span.field {
                label for="client" { "Client" }
                input #client type="search" list="clients" autocomplete="off" spellcheck="false" placeholder="all" aria-keyshortcuts="c";
            }
            datalist #clients {}
            span.field {
                label for="resource" { "Resource" }
                input #resource type="search" list="resources" autocomplete="off" spellcheck="false" placeholder="all" aria-keyshortcuts="r";
            }
            datalist #resources {}
            button #pause type="button" aria-pressed="false" aria-keyshortcuts="Space" { "Pause" }
            button #download type="button" title="The records that are shown, a line of JSON each" { "Download trace" }
            button #keys type="button" aria-keyshortcuts="?" { "Keys" }
        }
    }
}

fn violations() -> Markup {
    html! {
        section #violations aria-labelledby="violations-title" hidden {
            h2 #violations-title { "Violations" }
            div #found {}
        }
    }
}

fn watches() -> Markup {
    let columns = [
        ("", "state"),
        ("client", ""),
        ("resource", ""),
        ("version", "number"),
        ("behind", "number"),
        ("events/s", "number"),
        ("bookmark", "number"),
        ("open", "number"),
    ];
    html! {
        section #watches aria-labelledby="watches-title" {
            h2 #watches-title { "Watches" span #watches-note.note {} }
            div.grid role="group" tabindex="0" aria-label="Table of watches" {
                table #watch-table {
                    thead {
                        tr {
                            @for (name, class) in columns {
                                th scope="col" class=(class) {
                                    @if name.is_empty() { span.hidden { "state" } } @else { (name) }
                                }
                            }
                        }
                    }
                    tbody {}
                }
            }
            p #no-watches.note { "No watch is open." }
        }
    }
}

fn actions(buttons: &[Button]) -> Markup {
    let groups = [Aim::Watches, Aim::Caches, Aim::Server];
    html! {
        section #actions aria-labelledby="actions-title" {
            h2 #actions-title { "Do" }
            p #done role="status" { "Select a watch, or filter, to act on less than all." }
            @for aim in groups {
                h3 id={ "on-" (aim.word()) } { "On the " (aim.word()) }
                ul {
                    @for button in buttons.iter().filter(|button| button.aim == aim) { (action(button)) }
                }
            }
        }
    }
}

fn action(button: &Button) -> Markup {
    let (aim, does) = (button.aim.word(), format!("does-{}", button.verb));
    html! {
        li {
            button type="button" data-verb=(button.verb) data-aim=(aim) data-path=(button.path) data-body=(button.body)
                aria-describedby={ "on-" (aim) " " (does) } { (button.verb) }
            @if let Some((name, default)) = button.argument {
                input type="text" value=(default) aria-label={ (name) " of " (button.verb) } size="5"
                    autocomplete="off" spellcheck="false";
            }
            p id=(does) { (button.words) }
        }
    }
}

fn timeline() -> Markup {
    html! {
        section #drawing aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" span #timeline-note.note {} }
            figure.timeline #timeline {}
        }
    }
}

fn events() -> Markup {
    html! {
        section #records aria-labelledby="records-title" {
            h2 #records-title { "Records" span #records-note.note {} }
            div.grid.events role="group" tabindex="0" aria-label="Table of records" {
                table #record-table {
                    thead {
                        tr {
                            th scope="col" { "time" }
                            th scope="col" { "client" }
                            th scope="col" { "record" }
                            th scope="col" { "object" }
                        }
                    }
                    tbody {}
                }
            }
        }
    }
}

fn history() -> Markup {
    html! {
        section #history aria-labelledby="history-title" {
            h2 #history-title { "History of an object" }
            form #history-of {
                span.field {
                    label for="history-resource" { "Resource" }
                    input #history-resource type="text" autocomplete="off" spellcheck="false" placeholder="pods";
                }
                span.field {
                    label for="history-object" { "Object" }
                    input #history-object type="text" autocomplete="off" spellcheck="false" placeholder="default/web";
                }
                button { "Show" }
            }
            p #history-note.note { "Versions, and the watches that were sent them. The trace has no content." }
            div.wide { table #history-table hidden {
                caption.hidden { "Versions of the object" }
                thead {
                    tr {
                        th scope="col" { "version" }
                        th scope="col" { "write" }
                        th scope="col" { "time" }
                        th.number scope="col" { "sent" }
                        th scope="col" { "first to" }
                    }
                }
                tbody {}
            } }
        }
    }
}

fn help() -> Markup {
    let keys = [
        ("Space", "pause, and go on"),
        ("c r", "filter by client, by resource"),
        ("j k", "next, previous watch"),
        ("n p", "next, previous event of the timeline"),
        ("v", "next violation"),
        ("+ − 0", "zoom in, zoom out, show all"),
        ("Esc", "leave a field, select no watch"),
        ("?", "show these keys"),
    ];
    keys_dialog(&keys)
}
