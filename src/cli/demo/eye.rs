//! Sees the store file change: every generation that is renamed into place, by the system's own file events.

use std::io;
use std::path::Path;

/// Watches one file's folder and counts the generations of the file.
#[derive(Debug)]
pub(super) struct Eye {
    events: imp::Events,
    /// Generations since the eye opened.
    generations: u64,
}

impl Eye {
    /// Watches `file`, whose folder exists.
    pub(super) fn on(file: &Path) -> io::Result<Eye> {
        Ok(Eye { events: imp::Events::of(file)?, generations: 0 })
    }

    /// Waits for the next generation. Cancel safe.
    pub(super) async fn blink(&mut self) -> io::Result<()> {
        self.events.next().await?;
        self.generations += 1;
        Ok(())
    }

    /// Generations seen so far, those that wait to be read included.
    pub(super) async fn generations(&mut self) -> u64 {
        // a generation that is already there is told within one turn of the reactor; nothing else is waited for
        let turn = std::time::Duration::from_millis(1);
        while let Ok(Ok(())) = tokio::time::timeout(turn, self.blink()).await {}
        self.generations
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::ffi::OsString;
    use std::io;
    use std::path::Path;

    use inotify::{EventStream, Inotify, WatchMask};
    use tokio_stream::StreamExt;

    #[derive(Debug)]
    pub(super) struct Events {
        name: OsString,
        stream: EventStream<Vec<u8>>,
    }

    impl Events {
        pub(super) fn of(file: &Path) -> io::Result<Events> {
            let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            };
            let inotify = Inotify::init()?;
            inotify.watches().add(folder, WatchMask::MOVED_TO)?;
            Ok(Events { name: name.to_owned(), stream: inotify.into_event_stream(vec![0; 4096])? })
        }

        pub(super) async fn next(&mut self) -> io::Result<()> {
            loop {
                let event = self.stream.next().await.ok_or(io::ErrorKind::UnexpectedEof)??;
                if event.name.as_ref() == Some(&self.name) {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(target_os = "macos")]
mod imp {
    //! Untested.

    use std::io;
    use std::path::Path;

    use notify::{RecommendedWatcher, RecursiveMode, Watcher};
    use tokio::sync::mpsc;

    /// Changes that may wait to be looked at; more of them say nothing new.
    const WAITING: usize = 64;

    #[derive(Debug)]
    pub(super) struct Events {
        changes: mpsc::Receiver<()>,
        _watcher: RecommendedWatcher,
    }

    impl Events {
        pub(super) fn of(file: &Path) -> io::Result<Events> {
            let (Some(folder), Some(name)) = (file.parent(), file.file_name().map(ToOwned::to_owned)) else {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            };
            let (sender, changes) = mpsc::channel(WAITING);
            let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                if event.is_ok_and(|event| event.paths.iter().any(|path| path.file_name() == Some(&name))) {
                    let _ = sender.try_send(());
                }
            })
            .map_err(io::Error::other)?;
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
            Ok(Events { changes, _watcher: watcher })
        }

        pub(super) async fn next(&mut self) -> io::Result<()> {
            self.changes.recv().await.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }
    }
}
