//! Folders that are told of: the store's and the sockets'. inotify on Linux, FSEvents or kqueue through `notify` on macOS.
//!
//! Tells which paths were touched, never what became of them: whoever hears it looks again. A folder that is not there yet
//! is waited for through the nearest one above it that is. A lost event (a queue that ran over) is told as [`Touched::All`].

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// What was touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Something of this path.
    Path(PathBuf),
    /// Nobody knows: look at everything.
    All,
}

/// Which folders are watched, and for whose sake.
#[derive(Debug, Default)]
struct Folders {
    /// The folders somebody wants to hear of.
    wanted: BTreeSet<PathBuf>,
}

impl Folders {
    /// The folder to watch for the sake of `wanted` now: itself, or the nearest one above it that is there.
    fn nearest(wanted: &Path) -> PathBuf {
        wanted.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
    }

    /// Of the folders below `above`, exactly these are wanted.
    fn keep(&mut self, above: &Path, folders: &BTreeSet<PathBuf>) {
        self.wanted.retain(|wanted| wanted == above || !wanted.starts_with(above));
        self.wanted.extend(folders.iter().cloned());
    }

    /// Everything to watch now.
    fn standing(&self) -> BTreeSet<PathBuf> {
        self.wanted.iter().map(|wanted| Self::nearest(wanted)).collect()
    }
}

#[cfg(target_os = "linux")]
pub use linux::Watcher;
#[cfg(target_os = "macos")]
pub use macos::Watcher;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use inotify::{EventMask, EventStream, Inotify, WatchDescriptor, WatchMask, Watches};
    use tokio_stream::StreamExt;

    use super::{BTreeSet, Folders, Path, PathBuf, Touched, io};

    /// Room for the events of one read.
    const BUFFER: usize = 16 * 1024;

    /// The folders being watched.
    pub struct Watcher {
        folders: Folders,
        watches: Watches,
        stream: EventStream<Vec<u8>>,
        at: BTreeMap<PathBuf, WatchDescriptor>,
        /// What is heard of besides.
        more: WatchMask,
    }

    impl Watcher {
        /// Watches nothing yet. Must be called within a tokio runtime.
        pub fn new() -> io::Result<Self> {
            let inotify = Inotify::init()?;
            let watches = inotify.watches();
            let stream = inotify.into_event_stream(vec![0; BUFFER])?;
            let more = WatchMask::empty();
            Ok(Self { folders: Folders::default(), watches, stream, at: BTreeMap::new(), more })
        }

        /// The same, told of each write to a file besides: for files that grow while they are open.
        pub fn of_writes() -> io::Result<Self> {
            Ok(Self { more: WatchMask::MODIFY, ..Self::new()? })
        }

        /// Hears of this folder from now on, whether it is there or not.
        pub fn add(&mut self, folder: &Path) -> io::Result<()> {
            self.folders.wanted.insert(folder.to_owned());
            self.follow()
        }

        /// Hears of exactly these folders below `above` from now on.
        pub fn keep(&mut self, above: &Path, folders: &BTreeSet<PathBuf>) -> io::Result<()> {
            self.folders.keep(above, folders);
            self.follow()
        }

        /// The next thing that was touched. Cancel safe.
        pub async fn next(&mut self) -> Touched {
            loop {
                let event = match self.stream.next().await {
                    Some(Ok(event)) => event,
                    // an unreadable queue is a lost one
                    Some(Err(_)) => return Touched::All,
                    None => return std::future::pending().await,
                };
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    return Touched::All;
                }
                let Some(folder) =
                    self.at.iter().find(|(_, wd)| **wd == event.wd).map(|(folder, _)| folder.clone())
                else {
                    continue;
                };
                let moved = EventMask::DELETE_SELF | EventMask::MOVE_SELF | EventMask::IGNORED;
                if event.mask.intersects(moved) {
                    self.at.remove(&folder);
                    // its own folder may be on the way back: whatever stands there now is watched instead
                    let _ = self.follow();
                    return Touched::All;
                }
                let Some(name) = event.name else { continue };
                let path = folder.join(name);
                if event.mask.contains(EventMask::ISDIR) && self.is_above_wanted(&path) {
                    let _ = self.follow();
                    return Touched::All;
                }
                return Touched::Path(path);
            }
        }

        fn is_above_wanted(&self, path: &Path) -> bool {
            self.folders.wanted.iter().any(|wanted| wanted.starts_with(path))
        }

        /// Watches what stands now for what is wanted, and no more what stood for it before.
        fn follow(&mut self) -> io::Result<()> {
            let mask = WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::MOVED_FROM
                | WatchMask::MOVED_TO
                | WatchMask::CLOSE_WRITE
                | WatchMask::ATTRIB
                | WatchMask::DELETE_SELF
                | WatchMask::MOVE_SELF
                | WatchMask::ONLYDIR
                | self.more;
            // a folder can be made between the look and the watch: look until the two agree
            for _ in 0..8 {
                let standing: BTreeSet<PathBuf> = self.folders.standing();
                let idle: Vec<PathBuf> =
                    self.at.keys().filter(|folder| !standing.contains(*folder)).cloned().collect();
                for folder in idle {
                    if let Some(wd) = self.at.remove(&folder) {
                        // gone by itself if the folder is
                        let _ = self.watches.remove(wd);
                    }
                }
                for folder in &standing {
                    if !self.at.contains_key(folder) {
                        match self.watches.add(folder, mask) {
                            Ok(wd) => {
                                self.at.insert(folder.clone(), wd);
                            }
                            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                if self.folders.standing() == standing && standing.iter().all(|f| self.at.contains_key(f)) {
                    return Ok(());
                }
            }
            Ok(())
        }
    }
}

#[cfg(target_os = "macos")]
mod macos {
    use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
    use tokio::sync::mpsc;

    use super::{BTreeSet, Folders, Path, PathBuf, Touched, io};

    /// Events kept until they are read; more is told as [`Touched::All`].
    const ROOM: usize = 1024;

    /// The folders being watched. Untested.
    pub struct Watcher {
        folders: Folders,
        notify: RecommendedWatcher,
        heard: mpsc::Receiver<Touched>,
    }

    impl Watcher {
        /// Watches nothing yet.
        pub fn new() -> io::Result<Self> {
            let (tell, heard) = mpsc::channel(ROOM);
            let notify = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let touched = match event {
                    Ok(event) if !event.need_rescan() => {
                        event.paths.into_iter().map(Touched::Path).collect::<Vec<_>>()
                    }
                    Ok(_) | Err(_) => vec![Touched::All],
                };
                for one in touched {
                    if tell.try_send(one).is_err() {
                        break;
                    }
                }
            })
            .map_err(io::Error::other)?;
            Ok(Self { folders: Folders::default(), notify, heard })
        }

        /// The same: every write is told here.
        pub fn of_writes() -> io::Result<Self> {
            Self::new()
        }

        /// Hears of this folder from now on, whether it is there or not.
        pub fn add(&mut self, folder: &Path) -> io::Result<()> {
            self.folders.wanted.insert(folder.to_owned());
            for standing in self.folders.standing() {
                self.notify.watch(&standing, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
            }
            Ok(())
        }

        /// Hears of these folders below `above` from now on; of those it no longer wants, what is heard is harmless.
        pub fn keep(&mut self, above: &Path, folders: &BTreeSet<PathBuf>) -> io::Result<()> {
            self.folders.keep(above, folders);
            for standing in self.folders.standing() {
                self.notify.watch(&standing, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
            }
            Ok(())
        }

        /// The next thing that was touched. Cancel safe.
        pub async fn next(&mut self) -> Touched {
            match self.heard.recv().await {
                Some(touched) => touched,
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn hears(watcher: &mut Watcher, wanted: &Path) {
        let deadline = Duration::from_secs(10);
        tokio::time::timeout(deadline, async {
            loop {
                match watcher.next().await {
                    Touched::Path(path) if path == wanted => return,
                    Touched::All if wanted.exists() => return,
                    Touched::Path(_) | Touched::All => {}
                }
            }
        })
        .await
        .expect("the touch is told");
    }

    #[tokio::test]
    async fn a_folder_that_is_made_later_is_heard_of() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        let mut watcher = Watcher::new().unwrap();
        watcher.add(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        hears(&mut watcher, &folder).await;
        std::fs::write(folder.join("socket"), b"").unwrap();
        hears(&mut watcher, &folder.join("socket")).await;
    }

    #[tokio::test]
    async fn a_folder_that_is_removed_and_made_again_is_heard_of() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a");
        std::fs::create_dir(&folder).unwrap();
        let mut watcher = Watcher::new().unwrap();
        watcher.add(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(watcher.next().await, Touched::All);
        std::fs::create_dir(&folder).unwrap();
        hears(&mut watcher, &folder).await;
        std::fs::write(folder.join("x"), b"").unwrap();
        hears(&mut watcher, &folder.join("x")).await;
    }
}
