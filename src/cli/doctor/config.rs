//! The user's own settings: whether they can be taken, and whether the program they name to tell of things is there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::finding::Finding;
use crate::cli::print::shown;
use crate::cli::setup::diff::shown_path;
use crate::config::{Config, Loaded};

/// What was found, and whether the settings can be taken.
pub(super) fn check() -> (Vec<Finding>, bool) {
    let Some(path) = Config::path() else { return (Vec::new(), true) };
    match Config::load() {
        Err(wrong) => {
            let bad = Finding::bad("config", shown(wrong.to_string().as_bytes()))
                .hint("until it is put right, nothing of the file is taken");
            (vec![bad], false)
        }
        Ok(Loaded { config, warnings }) => {
            let unknown = warnings.into_iter().map(|words| Finding::note("config", shown(words.as_bytes())));
            let mut found: Vec<Finding> = unknown.collect();
            let refused = config.catalog().err();
            let taken = refused.is_none();
            found.extend(refused.map(|wrong| {
                let wrong = shown(wrong.to_string().as_bytes());
                Finding::bad("config", format!("{}: {wrong}", shown_path(&path)))
            }));
            found.extend(config.notify.command.first().and_then(|program| missing(program)));
            (found, taken)
        }
    }
}

/// The program of `[notify]`, if it is not there.
fn missing(program: &str) -> Option<Finding> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if is_there(program, &path) {
        return None;
    }
    let what = format!("[notify] names {}, which is no program here", shown(program.as_bytes()));
    Some(Finding::bad("config", what).hint("give its whole path: the supervisor's PATH may be another one"))
}

fn is_there(program: &str, path: &OsStr) -> bool {
    let runs = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        // it is started in `/`
        return runs(&PathBuf::from("/").join(program));
    }
    std::env::split_paths(path).any(|folder| runs(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_as_it_is_started() {
        let path = OsStr::new("/nowhere:/bin");
        for (program, there) in [
            ("sh", true),
            ("/bin/sh", true),
            ("bin/sh", true),
            ("bin", false),
            ("no-such", false),
            ("/", false),
        ] {
            assert_eq!(is_there(program, path), there, "{program}");
        }
    }
}
