//! `ait completions`: what a shell needs to complete the commands and options of `ait`.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use super::session::face::Face;
use super::{Ait, Exit, Failure, print};

/// Print the completions for a shell.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait completions bash > ~/.local/share/bash-completion/completions/ait\n  \
                        ait completions zsh > ~/.zfunc/_ait\n  ait completions fish > ~/.config/fish/completions/ait.fish"
)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Ait::command(), Face::ours().program(), &mut script);
    print::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::OK)
}
