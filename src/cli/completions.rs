//! `ait completions`: what a shell needs to complete the commands and options of `ait`.

use clap::{Args as ClapArgs, Command, CommandFactory};
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
    let face = Face::ours();
    clap_complete::generate(
        args.shell,
        &mut visible(&face.dressed(Ait::command())),
        face.program(),
        &mut script,
    );
    print::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::OK)
}

/// The command without what its help does not tell: the generators offer everything there is.
fn visible(whole: &Command) -> Command {
    // a few names, once in a process that ends then
    let name: &'static str = whole.get_name().to_owned().leak();
    Command::new(name)
        .about(whole.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .args(whole.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(whole.get_subcommands().filter(|own| !own.is_hide_set()).map(visible))
}
