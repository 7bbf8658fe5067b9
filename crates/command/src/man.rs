//! `fake-apiserver man`: manual pages and a reference in Markdown, generated from the command line itself. It must not know any
//! subcommand.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::{Failure, output, stage};

/// Print the manual page, or write the pages of all subcommands.
///
/// Read it at once with `fake-apiserver man | man -l -`. With DIR, pages such as `fake-apiserver-ctl-fail.1` are written there:
/// `~/.local/share/man/man1` is a folder that `man` reads.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each subcommand to this folder.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print the help of all subcommands as one page of Markdown.
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

/// Columns of the help in the Markdown page, whatever the terminal has.
const WIDTH: usize = 100;

/// Prints the page of the program, or writes all pages.
///
/// # Errors
/// The folder cannot be written to, or standard output is closed.
pub(crate) fn run(arguments: &Man, command: Command) -> Result<(), Failure> {
    if arguments.markdown {
        let page = reference(command);
        return stage::block_on(async |stop| output::print(page, &stop).await);
    }
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Page::new(command)
            .render(&mut page)
            .map_err(|error| Failure::System("cannot render the manual page".to_owned(), error))?;
        let page = String::from_utf8_lossy(&page).into_owned();
        return stage::block_on(async |stop| output::print(page, &stop).await);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| Failure::System(format!("cannot write to {}", folder.display()), error))
}

/// Returns the help of a command and of all its subcommands as a page of Markdown.
fn reference(command: Command) -> String {
    let mut command = command.term_width(WIDTH);
    command.build();
    let mut page =
        "# Command reference\n\nThe help of every command, as `fake-apiserver man --markdown` prints it.\n"
            .to_owned();
    add_help(&mut page, &mut command);
    page
}

/// Appends the help of a command, and of its subcommands in their order; those that are hidden are left out.
fn add_help(page: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    let _ = writeln!(page, "\n## `{name}`\n\n```text\n{}\n```", text.trim_end());
    let shown = command
        .get_subcommands_mut()
        .filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    for inner in shown {
        add_help(page, inner);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_reference_in_the_book_equals_the_help() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let page = std::fs::read_to_string(path).unwrap();
        let expected = reference(crate::Arguments::command());
        assert!(
            page == expected,
            "docs/commands.md differs; renew it: cargo run -p fake-apiserver-cli -- man --markdown > docs/commands.md"
        );
    }
}
