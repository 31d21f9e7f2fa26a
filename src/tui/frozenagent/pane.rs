//! The viewer's own pane: said to be ready, closed, and the buffer of its server. Each act tests in tmux, in the same
//! command, that the pane still carries the record's stamp in the same life of the server.

use tmux_control::PaneId;

use crate::process::{self, TmuxEnv};
use crate::record::RecordId;
use crate::tmux::guarded::{self, Dispatch, Epoch, Guard, Outcome, PaneOption, Token};
use crate::tmux::{OneShot, Unanswered};

/// How often a server that does not answer is asked in a row; each time it has the deadline of [`OneShot`].
const TRIES: usize = 3;

/// The pane this process was started in.
#[derive(Debug, Clone)]
pub(super) struct OwnPane {
    server: OneShot,
    server_pid: i32,
    pub(super) id: PaneId,
}

impl OwnPane {
    /// By this process's environment; none outside tmux.
    pub(super) fn find() -> Option<OwnPane> {
        let TmuxEnv { socket, server_pid, pane, .. } =
            process::tmux_of(i32::try_from(std::process::id()).ok()?).ok()??;
        Some(OwnPane { server: OneShot::new(socket).ok()?, server_pid, id: PaneId(pane?) })
    }

    /// Marks the pane as a stand-in that is up, if it carries the record's stamp; whether it does. Unknown if the server
    /// does not say.
    pub(super) async fn say_ready(&self, record: RecordId) -> Option<bool> {
        for _ in 0..TRIES {
            let ready = |guard, token| guarded::set(guard, PaneOption::StandinReady, "1", token).ok();
            match self.act(record, ready).await {
                Ok(Outcome::Done) => return Some(true),
                Ok(Outcome::NotMet | Outcome::Refused(_)) | Err(Unanswered::NoServer { .. }) => {
                    return Some(false);
                }
                Ok(Outcome::Unknown) | Err(_) => {}
            }
        }
        None
    }

    /// Closes the pane, if it carries the record's stamp: an end alone would leave it where ended panes are kept.
    pub(super) async fn close(&self, record: RecordId) {
        // a pane that cannot be closed is left with its ended viewer, as after any other end
        let _ = self.act(record, |guard, token| Some(guarded::kill_pane(guard, token))).await;
    }

    /// Puts a text into the newest buffer of the server, and into the clipboard of its clients where they let it.
    pub(super) async fn copy(&self, text: &str) -> Result<(), Unanswered> {
        self.server.feed(["load-buffer", "-w", "-"], Some(text.as_bytes())).await.map(drop)
    }

    async fn act(
        &self,
        record: RecordId,
        act: impl Fn(Guard, Token) -> Option<Dispatch>,
    ) -> Result<Outcome, Unanswered> {
        let words = ["display-message", "-p", "-t", &self.id.to_string(), "#{pid} #{start_time} #{pane_pid}"];
        let answer = String::from_utf8_lossy(&self.server.run(words).await?).into_owned();
        let Some((epoch, process)) = life(&answer).filter(|(epoch, _)| epoch.pid == self.server_pid) else {
            return Ok(Outcome::NotMet);
        };
        // the process too: what was respawned meanwhile is not spoken for
        let guard = Guard::new(self.id, epoch).stamped(PaneOption::Frozen, record).process(process);
        match Token::random().ok().and_then(|token| act(guard, token)) {
            Some(dispatch) => dispatch.printed().run(&self.server).await,
            None => Ok(Outcome::Unknown),
        }
    }
}

/// The server's life and the pane's process, as tmux prints them.
fn life(answer: &str) -> Option<(Epoch, i32)> {
    let mut words = answer.split_whitespace();
    let epoch = Epoch { pid: words.next()?.parse().ok()?, started_at: words.next()?.parse().ok()? };
    Some((epoch, words.next()?.parse().ok()?))
}
