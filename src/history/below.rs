//! A provider of which only the folder of its conversations is known: one is there when a name in the folder, or in one below
//! it, has its id in it (`<id>.jsonl`, `2026-11/session-<id>.json`, `<id>/`).

use std::path::PathBuf;

use super::answer::{Located, Looked, Miss};
use super::disk::{Disk, Kind};
use super::{Doubt, Environment};

/// Folders below the store that are gone into.
const DEPTH: usize = 6;
/// Folders that are listed.
const FOLDERS: usize = 20_000;

/// The conversation `id` in `folder`, an absolute path or one from `~/`.
pub(super) fn locate(disk: &Disk, folder: &str, id: &str, env: &Environment) -> Looked {
    let path = match folder.strip_prefix("~/") {
        Some(below) => env.home()?.join(below),
        None => PathBuf::from(folder),
    };
    let Some(shelf) = disk.shelf(&path)? else { return Located::missing(Miss::NoStore) };
    // level by level: what lies nearest is the conversation's own, what lies below it belongs to it
    let mut level = vec![PathBuf::new()];
    let mut listed = 0;
    for _ in 0..=DEPTH {
        let mut next = Vec::new();
        let mut found: Option<(Kind, PathBuf)> = None;
        for below in level {
            listed += 1;
            if listed > FOLDERS {
                return Err(Doubt::TooMuch { path });
            }
            for entry in shelf.list(&below)?.unwrap_or_default() {
                let at = below.join(&entry.name);
                let better =
                    matches!((&found, entry.kind), (None, _) | (Some((Kind::Folder, _)), Kind::File));
                match entry.kind {
                    Kind::File | Kind::Folder if has_id(&entry.name, id) => {
                        if better {
                            found = Some((entry.kind, at));
                        }
                    }
                    Kind::Folder => next.push(at),
                    Kind::File | Kind::Link | Kind::Other => {}
                }
            }
        }
        if let Some((_, at)) = found {
            return Located::present(shelf.path().join(at), true, None);
        }
        level = next;
    }
    Located::missing(Miss::NoConversation)
}

/// Whether a name has the whole id in it: no letter or digit before or after.
fn has_id(name: &str, id: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    name.match_indices(id)
        .any(|(at, _)| edge(name[..at].chars().next_back()) && edge(name[at + id.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    #[test]
    fn a_conversation_is_there_under_its_whole_id() {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join(".mine");
        fs::create_dir_all(store.join("2026/a1")).unwrap();
        fs::write(store.join("2026/a1.jsonl"), "{}").unwrap();
        fs::write(store.join("2026/session-b2.json"), "{}").unwrap();
        std::os::unix::fs::symlink("/", store.join("c3")).unwrap();
        let env = Environment::recorded(&BTreeMap::new()).with_home(home.path());
        let look = |folder: &str, id: &str| match Located::of(locate(&Disk::default(), folder, id, &env)) {
            Located::Present { path, .. } => {
                path.strip_prefix(store.canonicalize().unwrap()).unwrap().display().to_string()
            }
            Located::Missing { why } => why.word().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(look("~/.mine", "a1"), "2026/a1.jsonl", "the file before the folder");
        assert_eq!(look(store.to_str().unwrap(), "b2"), "2026/session-b2.json");
        for missing in ["b", "a", "sion-b2x", "c3"] {
            assert_eq!(look("~/.mine", missing), "no_conversation", "{missing}");
        }
        assert_eq!(look("~/.other", "a1"), "no_store");
    }
}
