//! `fake-apiserver completions`: the completion script of a shell, generated from the command line itself. It must not
//! know any subcommand.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{Failure, output, stage};

/// Print a completion script for a shell.
///
/// Load it in the running shell, or write it to where the shell looks for completions:
///
///   bash  source <(fake-apiserver completions bash)
///         or ~/.local/share/bash-completion/completions/fake-apiserver
///   zsh   a file `_fake-apiserver` in a folder of $fpath
///   fish  ~/.config/fish/completions/fake-apiserver.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// Shell to complete in.
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn run(arguments: &Completions, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name.as_str(), &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if arguments.shell == Shell::Bash {
        // clap_complete writes the name with its hyphen in two ways, and bash completes no subcommand: clap-rs/clap#6421.
        script = script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"));
    }
    stage::block_on(async |stop| output::print(script, &stop).await)
}
