//! Everything `ait` has set on a server, read back from the server itself, and the taking back of it.
//!
//! A supervisor's clean end takes back what it set; this is for what a crash left. It reads only what stands on panes
//! themselves and on the hidden session, and it takes back nothing else.

use bstr::{BString, ByteSlice};
use tmux_control::PaneId;

use crate::record::ServerEpoch;
use crate::tmux::guarded::{self, Epoch, Guard, PaneOption, Token};
use crate::tmux::{HOLD_SESSION, OneShot, Unanswered};

/// How many panes are asked in one command.
const AT_ONCE: usize = 50;

/// tmux's own option that is set on panes kept for their last screen.
const KEPT: &str = "remain-on-exit";

/// What is set on one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whether the hidden session is there. On its pane, and nowhere else of it, `remain-on-exit off` is set.
    pub hidden_session: bool,
    /// What is set on panes.
    pub panes: Vec<Set>,
}

/// One option on one pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The pane.
    pub pane: PaneId,
    /// The option.
    pub option: &'static str,
    /// Its value.
    pub value: BString,
}

/// Reads what is set on a server.
///
/// # Errors
/// No answer: then nothing is known.
pub async fn read(server: &OneShot) -> Result<Touched, Unanswered> {
    let mut touched = Touched::default();
    let hold = format!("={HOLD_SESSION}:");
    match server.run(["has-session", "-t", &hold]).await {
        Ok(_) => touched.hidden_session = true,
        // there is no such session
        Err(Unanswered::Refused { .. }) => {}
        Err(other) => return Err(other),
    }
    let answer = server.run(["list-panes", "-a", "-F", "#{pane_id} #{session_name}"]).await?;
    let mut own = Vec::new();
    let mut panes = Vec::new();
    for line in answer.lines() {
        let Some((id, session)) = split(line) else { continue };
        let Ok(id) = std::str::from_utf8(id) else { continue };
        panes.push(id);
        if session == HOLD_SESSION.as_bytes() {
            own.extend(PaneId::parse(id.as_bytes()));
        }
    }
    // a window in several sessions lists its panes in each
    panes.sort_unstable();
    panes.dedup();
    for some in panes.chunks(AT_ONCE) {
        touched.panes.extend(ask(server, some, &own).await?);
    }
    Ok(touched)
}

/// Asks about some panes in one command; where one of them closed meanwhile, about each alone.
async fn ask(server: &OneShot, panes: &[&str], own: &[PaneId]) -> Result<Vec<Set>, Unanswered> {
    let mut words: Vec<&str> = Vec::new();
    for pane in panes {
        if !words.is_empty() {
            words.push(";");
        }
        words.extend([
            "display-message",
            "-p",
            "-t",
            pane,
            "#{pane_id}",
            ";",
            "show-options",
            "-p",
            "-t",
            pane,
        ]);
    }
    match server.run(words).await {
        Ok(answer) => Ok(sets(&answer, own)),
        // a pane that closed took what was set on it along
        Err(Unanswered::Refused { .. }) if panes.len() <= 1 => Ok(Vec::new()),
        Err(Unanswered::Refused { .. }) => {
            let mut all = Vec::new();
            for pane in panes {
                all.extend(Box::pin(ask(server, &[pane], own)).await?);
            }
            Ok(all)
        }
        Err(other) => Err(other),
    }
}

/// Our options out of the answers: a line `%N` begins a pane. `remain-on-exit` is ours only beside a stamp, and on a pane of
/// the hidden session.
fn sets(answer: &[u8], own: &[PaneId]) -> Vec<Set> {
    let mut all: Vec<Set> = Vec::new();
    let mut pane = None;
    for line in answer.lines() {
        if let Some(id) = std::str::from_utf8(line).ok().and_then(|line| line.parse::<PaneId>().ok()) {
            pane = Some(id);
        } else if let (Some(pane), Some((name, value))) = (pane, split(line)) {
            let known = PaneOption::ALL.map(PaneOption::name).into_iter().chain([KEPT]);
            if let Some(option) = known.into_iter().find(|option| option.as_bytes() == name) {
                all.push(Set { pane, option, value: value.trim_with(|c| c == '"').into() });
            }
        }
    }
    let stamped: Vec<PaneId> = all.iter().filter(|set| set.option != KEPT).map(|set| set.pane).collect();
    all.retain(|set| stamped.contains(&set.pane) || own.contains(&set.pane));
    all
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.find_byte(b' ')?;
    Some((&line[..at], &line[at + 1..]))
}

/// Takes back what was read: the options of the panes that still have them, and the hidden session when nobody is in it.
/// Gives what could not be taken back, as lower-case fragments.
pub async fn withdraw(server: &OneShot, epoch: &ServerEpoch, touched: &Touched) -> Vec<String> {
    let mut left = Vec::new();
    let Some(started_at) = epoch.started_at else {
        return vec!["the server does not say when it started".to_owned()];
    };
    let epoch = Epoch { pid: epoch.pid, started_at };
    let mut panes: Vec<PaneId> = touched.panes.iter().map(|set| set.pane).collect();
    panes.sort_unstable();
    panes.dedup();
    for pane in panes {
        for set in touched.panes.iter().filter(|set| set.pane == pane) {
            if let Err(why) = take_back(server, Guard::new(pane, epoch), set).await {
                left.push(format!("{} on pane {pane}: {why}", set.option));
            }
        }
        // the proof that the acts leave, last
        let id = pane.to_string();
        let token = PaneOption::RespawnToken.name();
        if let Err(why) = server.run(["set-option", "-p", "-u", "-q", "-t", id.as_str(), token]).await {
            left.push(format!("{token} on pane {pane}: {why}"));
        }
    }
    if touched.hidden_session {
        let (target, session) = (format!("={HOLD_SESSION}:"), format!("kill-session -t ={HOLD_SESSION}"));
        let alone = "#{==:#{session_attached},0}";
        match server.run(["if-shell", "-F", "-t", &target, alone, &session]).await {
            // gone by itself meanwhile
            Ok(_) | Err(Unanswered::Refused { .. } | Unanswered::NoServer { .. }) => {}
            Err(why) => left.push(format!("session {HOLD_SESSION}: {why}")),
        }
    }
    left
}

async fn take_back(server: &OneShot, guard: Guard, set: &Set) -> Result<(), String> {
    let token = Token::random().map_err(|wrong| wrong.to_string())?;
    let act = match PaneOption::ALL.into_iter().find(|option| option.name() == set.option) {
        // taken off with the proofs
        Some(PaneOption::RespawnToken) => return Ok(()),
        Some(option) => guarded::unset(guard, option, token),
        None => guarded::keep_dead_no_more(guard, token),
    };
    match act.run(server).await.map_err(|wrong| wrong.to_string())? {
        // a pane that is gone, or a server that is another now, has nothing of ours
        guarded::Outcome::Done | guarded::Outcome::NotMet | guarded::Outcome::Refused(_) => Ok(()),
        guarded::Outcome::Unknown => Err("tmux gave no answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_read() {
        let answer =
            b"%0\nremain-on-exit on\n%1\n@aitask_record 0a1b2c3d\nremain-on-exit on\nwindow-style bg=red\n\
                       @mine x\n%12\n@aitask_frozen \"0a1b2c3e\"\n";
        let seen: Vec<String> = sets(answer, &[])
            .into_iter()
            .map(|set| format!("{} {} {}", set.pane, set.option, set.value))
            .collect();
        assert_eq!(
            seen,
            ["%1 @aitask_record 0a1b2c3d", "%1 remain-on-exit on", "%12 @aitask_frozen 0a1b2c3e"]
        );
    }
}
