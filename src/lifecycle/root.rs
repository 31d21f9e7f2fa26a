//! Which project a folder belongs to.

use std::io;
use std::path::{Path, PathBuf};

/// The file that marks a project's root.
const MARKER: &str = "aitasks/metadata/project_config.yaml";

/// The root of the project that `folder` lies in, resolved: the nearest ancestor with the project's marker, else the top
/// of the git work tree, else the folder itself.
///
/// # Errors
/// The folder cannot be resolved.
pub fn root_of(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    let with = |name: &str| folder.ancestors().find(|ancestor| ancestor.join(name).exists());
    // a linked work tree and a submodule have a `.git` file
    Ok(with(MARKER).or_else(|| with(".git")).unwrap_or(&folder).to_owned())
}

/// The root of the project that `folder` lies in, where marks say that there is one.
#[must_use]
pub fn marked_root(folder: &Path) -> Option<PathBuf> {
    let root = root_of(folder).ok()?;
    (root.join(MARKER).exists() || root.join(".git").exists()).then_some(root)
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
        std::fs::create_dir_all(top.join("aitasks/metadata")).unwrap();
        std::fs::write(top.join(MARKER), "").unwrap();
        assert_eq!(root_of(&inner).unwrap(), top, "the marker is stronger than a nearer git");
        assert!(root_of(&top.join("nowhere")).is_err());
    }
}
