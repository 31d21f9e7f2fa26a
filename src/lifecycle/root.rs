//! Which project a folder belongs to.

use std::io;
use std::path::{Path, PathBuf};

/// The file that marks a project's root.
const MARKER: &str = "aitasks/metadata/project_config.yaml";
/// What the top of a git work tree has; a linked work tree and a submodule have it as a file.
const GIT: &str = ".git";

/// The root of the project that `folder` lies in, resolved: the nearest ancestor with the project's marker, else the top
/// of the git work tree, else the folder itself.
///
/// # Errors
/// The folder cannot be resolved.
pub fn root_of(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    Ok(above_with(&folder, MARKER).or_else(|| above_with(&folder, GIT)).unwrap_or(&folder).to_owned())
}

/// The top of the git work tree that `folder` lies in, resolved.
#[must_use]
pub fn worktree(folder: &Path) -> Option<PathBuf> {
    above_with(&folder.canonicalize().ok()?, GIT).map(Path::to_owned)
}

/// The nearest of a folder and those above it that has this.
fn above_with<'a>(folder: &'a Path, name: &str) -> Option<&'a Path> {
    folder.ancestors().find(|above| above.join(name).exists())
}

/// The root of the project that `folder` lies in, where marks say that there is one.
#[must_use]
pub fn marked_root(folder: &Path) -> Option<PathBuf> {
    let root = root_of(folder).ok()?;
    (root.join(MARKER).exists() || root.join(GIT).exists()).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_then_git_then_the_folder() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let inner = top.join("tree/sub/deep");
        std::fs::create_dir_all(&inner).unwrap();
        std::os::unix::fs::symlink(&inner, top.join("link")).unwrap();
        assert_eq!(root_of(&top.join("link")).unwrap(), inner);
        std::fs::write(top.join("tree/.git"), "gitdir: x").unwrap();
        assert_eq!(root_of(&inner).unwrap(), top.join("tree"));
        assert_eq!(worktree(&top.join("link")), Some(top.join("tree")));
        std::fs::create_dir_all(top.join("aitasks/metadata")).unwrap();
        std::fs::write(top.join(MARKER), "").unwrap();
        assert_eq!(root_of(&inner).unwrap(), top, "the marker is stronger than a nearer git");
        assert!(root_of(&top.join("nowhere")).is_err());
    }
}
