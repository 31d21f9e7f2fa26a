//! Writing into a pane: exact, and tested and done in one command.
//!
//! A text goes into a buffer of its own through a pipe and stands in no command line; the paste deletes the buffer. Enter is a
//! pasted CR: `send-keys Enter` is swallowed in copy mode and doubled by `synchronize-panes`.

use std::time::Duration;

use bstr::ByteSlice;

use crate::record::RecordId;
use crate::tmux::guarded::{self, BadValue, Dispatch, Guard, Outcome, Token};
use crate::tmux::{OneShot, Unanswered};

/// How long a program has to take a text before Enter follows, and a key before the next one.
const SETTLE: Duration = Duration::from_millis(200);

/// Why something is not known to have been written.
#[derive(Debug, thiserror::Error)]
pub enum NotPasted {
    /// Its pane is not as it should be; nothing was written.
    #[error("its agent is gone")]
    Gone,
    /// tmux refused; nothing was written.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// A value that cannot be given to tmux; nothing was written.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// tmux did not answer. It may have been written.
    #[error("tmux did not say whether it was written")]
    Unknown,
}

/// One pane to write into.
#[derive(Debug)]
pub struct Hand<'a> {
    server: &'a OneShot,
    guard: Guard,
    /// What its buffers' names begin with.
    buffers: String,
    /// tmux rewrites control bytes without `-S`.
    knows_unchanged: bool,
}

impl<'a> Hand<'a> {
    /// A hand for the pane of that guard. Buffers are named `<buffers>-<token>`.
    #[must_use]
    pub fn new(server: &'a OneShot, guard: Guard, buffers: &str, knows_unchanged: bool) -> Self {
        Self { server, guard, buffers: buffers.to_owned(), knows_unchanged }
    }

    /// Pastes a text, bracketed where the pane asks for it; `whole` only where tmux sees that it does, which it does not in a mode.
    ///
    /// # Errors
    /// [`NotPasted`]; the buffer is gone.
    pub async fn text(&self, text: &[u8], whole: bool) -> Result<(), NotPasted> {
        let guard = if whole { self.guard.clone().in_no_mode() } else { self.guard.clone() };
        self.paste(guard, text, true).await
    }

    /// Presses Enter.
    ///
    /// # Errors
    /// [`NotPasted`]; the buffer is gone.
    pub async fn enter(&self) -> Result<(), NotPasted> {
        self.paste(self.guard.clone(), b"\r", false).await
    }

    /// Presses another key, by tmux's name for it; `anywhere` also where a mode takes it or other panes get it too.
    ///
    /// # Errors
    /// [`NotPasted`].
    pub async fn key(&self, name: &str, anywhere: bool) -> Result<(), NotPasted> {
        let guard = if anywhere { self.guard.clone() } else { self.guard.clone().reached_alone() };
        self.act(&guarded::key(guard, name, Token::random()?)).await
    }

    async fn paste(&self, guard: Guard, text: &[u8], bracketed: bool) -> Result<(), NotPasted> {
        let token = Token::random()?;
        let buffer = format!("{}-{}", self.buffers, token.as_str());
        let loaded = self.server.feed(["load-buffer", "-b", &buffer, "-"], Some(text)).await;
        let done = match loaded {
            Ok(_) => self.act(&guarded::paste(guard, &buffer, bracketed, self.knows_unchanged, token)).await,
            Err(error) => Err(error.into()),
        };
        if done.is_err() {
            let _ = self.server.run(["delete-buffer", "-b", &buffer]).await;
        }
        done
    }

    async fn act(&self, act: &Dispatch) -> Result<(), NotPasted> {
        match act.run(self.server).await {
            Ok(Outcome::Done) => Ok(()),
            Ok(Outcome::NotMet) => Err(NotPasted::Gone),
            Ok(Outcome::Refused(words)) => Err(Unanswered::Refused { words }.into()),
            Ok(Outcome::Unknown) => Err(NotPasted::Unknown),
            Err(Unanswered::NoServer { .. }) => Err(NotPasted::Gone),
            Err(error @ (Unanswered::NoBinary | Unanswered::Refused { .. })) => Err(error.into()),
            Err(
                Unanswered::Unreachable { .. }
                | Unanswered::ProtocolMismatch { .. }
                | Unanswered::Timeout { .. }
                | Unanswered::TooLong { .. }
                | Unanswered::Io { .. },
            ) => Err(NotPasted::Unknown),
        }
    }
}

/// What the names of the buffers of texts to that record begin with.
#[must_use]
pub fn buffers_of(record: RecordId) -> String {
    format!("ait-{record}")
}

/// Takes away the buffers that a paste left when it was killed: their names begin with `buffers`.
pub async fn sweep(server: &OneShot, buffers: &str) {
    // a server that does not answer has them until the next look
    let Ok(answer) = server.run(["list-buffers", "-F", "#{buffer_name}"]).await else { return };
    take_away(server, buffers, &answer).await;
}

/// [`sweep`] of these names, one on each line.
pub async fn take_away(server: &OneShot, buffers: &str, names: &[u8]) {
    let left = names.lines().filter_map(|line| std::str::from_utf8(line).ok());
    for name in left.filter(|name| name.strip_prefix(buffers).is_some_and(|rest| rest.starts_with('-'))) {
        let _ = server.run(["delete-buffer", "-b", name]).await;
    }
}

/// Whether this tmux can paste control bytes as they are: what `list-commands paste-buffer` prints names `-S`.
#[must_use]
pub fn knows_unchanged(commands: &[u8]) -> bool {
    let Some(line) = commands.lines().find(|line| line.starts_with(b"paste-buffer ")) else { return false };
    let flags = line.find(b"[-").and_then(|at| line.get(at + 2..));
    flags.is_some_and(|flags| flags.iter().take_while(|byte| **byte != b']').any(|byte| *byte == b'S'))
}

/// Lets [`SETTLE`] go by.
pub(super) async fn settle() {
    pause(SETTLE).await;
}

/// Lets a span go by between two looks at a program.
pub(super) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_read_from_what_tmux_says_of_itself() {
        let old = b"paste-buffer (pasteb) [-dpr] [-s separator] [-b buffer-name] [-t target-pane]\n";
        let new = b"paste-buffer (pasteb) [-dprS] [-s separator] [-b buffer-name] [-t target-pane]\n";
        assert!(!knows_unchanged(old));
        assert!(knows_unchanged(new));
        assert!(!knows_unchanged(b""));
    }
}
