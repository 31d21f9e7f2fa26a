//! `ait man`: the manual pages, out of the same definition as the help.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, CommandFactory};

use super::{Ait, Exit, Failure, print};

/// Print the manual page, or write one page per command into a folder.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  ait man | man -l -\n  ait man --dir ~/.local/share/man/man1")]
pub(super) struct Args {
    /// Write `ait.1` and a page per command there; the folder must exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    let ait = Ait::command();
    match args.dir {
        None => print::text(&String::from_utf8_lossy(&page(ait)?))?,
        Some(folder) => {
            for command in ait.get_subcommands().filter(|command| !command.is_hide_set()) {
                let name: &'static str = format!("ait-{}", command.get_name()).leak();
                write(&folder, name, page(command.clone().name(name))?)?;
            }
            write(&folder, "ait", page(ait.clone())?)?;
        }
    }
    Ok(Exit::OK)
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

fn write(folder: &Path, name: &str, page: Vec<u8>) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page)
        .map_err(|wrong| Failure::new(Exit::FAILED, format!("cannot write {}: {wrong}", path.display())))
}
