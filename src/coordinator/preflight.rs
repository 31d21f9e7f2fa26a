//! Whether a frozen agent can come back, before anything is written: each miss by its name.

use super::{Conversation, End, Outcome};
use crate::record::{PaneId, ProcessId, Record, RecordId, RestoreMode, ServerEpoch, State};

/// What was found about a restore that is thought of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The agent's arguments, its program's plain name first; else the reason word why there are none.
    pub argv: Result<Vec<String>, String>,
    /// The session id it will have, where it is known before: the asked-for one, or one that was chosen.
    pub session_id: Option<String>,
    /// Whether its program is found.
    pub binary: bool,
    /// Its folder, and whether that is there.
    pub folder: (String, bool),
    /// Its conversation on disk.
    pub conversation: Conversation,
    /// The folder that conversation is filed under, where that is another and the provider looks only there.
    pub filed: Option<String>,
    /// Another record that is live with this conversation, and its pane.
    pub twin: Option<(RecordId, Option<PaneId>)>,
    /// What an earlier attempt left, and other processes with this conversation.
    pub survivors: Vec<Survivor>,
    /// The shared server that has its conversation open, where the agent's arguments ask for one of its own.
    pub elsewhere: Option<ProcessId>,
    /// Why part of it could not be looked at; then nothing may be started.
    pub unknown: Option<String>,
}

/// Something that may be the agent already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// The pane it is in, with its server's life and the pane's own process.
    pub pane: Option<(PaneId, ServerEpoch, ProcessId)>,
    /// The process.
    pub process: ProcessId,
    /// It proved to have this conversation.
    pub proven: bool,
    /// An earlier attempt of ours started it.
    pub attempt: bool,
}

impl Survivor {
    /// How it is called: its pane, or its pid.
    #[must_use]
    pub fn name(&self) -> String {
        self.pane.as_ref().map_or_else(|| self.process.pid.to_string(), |(pane, ..)| pane.to_string())
    }
}

/// What preflight comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It can be started.
    Go,
    /// It runs already, started by an attempt that nobody tracks: taken as launched.
    Adopt(Box<Survivor>),
    /// It cannot, with the reason.
    No(Box<Outcome>),
}

/// Judges a record's own state.
///
/// # Errors
/// Why it cannot be restored.
pub fn is_restorable(record: &Record, free: bool) -> Result<(), Outcome> {
    let refused = |word: &str, seen: String| Err(Outcome::new(End::Refused, word, seen));
    match &record.state {
        State::Frozen { .. } if free => Ok(()),
        State::Frozen { .. } => refused("lease_held", "another operation is at it".to_owned()),
        State::Live => refused("not_frozen", "its agent runs".to_owned()),
        State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
            refused("lease_held", format!("another operation is at it ({})", record.state.name()))
        }
    }
}

/// Judges what was found.
#[must_use]
pub fn judge(record: &Record, mode: RestoreMode, ready: &Ready) -> Verdict {
    let no = |word: &str, seen: String, hint: &str| {
        let outcome = Outcome::new(End::Refused, word, seen);
        let outcome = if hint.is_empty() { outcome } else { outcome.hint(hint) };
        Verdict::No(Box::new(outcome))
    };
    let repick = "`--mode repick` begins a new conversation";
    match &ready.argv {
        Ok(_) => {}
        Err(word) => return no(word, format!("{}: no exact way back", record.agent_kind), repick),
    }
    if let Some((other, pane)) = &ready.twin {
        let pane = pane.map_or_else(|| other.to_string(), |pane| pane.to_string());
        let seen = format!("record {other} runs this conversation");
        return no(&format!("already_live:{pane}"), seen, "");
    }
    let adoptable = |one: &&Survivor| one.proven && one.attempt && one.pane.is_some();
    if let Some(survivor) = ready.survivors.iter().find(adoptable)
        && ready.survivors.len() == 1
    {
        return Verdict::Adopt(Box::new(survivor.clone()));
    }
    if let Some(survivor) = ready.survivors.first() {
        let word = if survivor.proven && !survivor.attempt { "already_live" } else { "survivor" };
        let seen = format!("process {} may be this agent still", survivor.process.pid);
        return no(&format!("{word}:{}", survivor.name()), seen, "look at it; end it, then restore again");
    }
    if let Some(server) = &ready.elsewhere {
        let seen = format!("its conversation is open in the shared server of Codex (process {})", server.pid);
        let hint = "it is let go some time after its last terminal was closed; `codex app-server daemon stop` ends the server";
        return no("open_elsewhere", seen, hint);
    }
    if let Some(why) = &ready.unknown {
        return no("unknown", format!("it cannot be told whether it still runs: {why}"), "");
    }
    if !ready.binary {
        let name = ready.argv.as_ref().ok().and_then(|argv| argv.first().cloned()).unwrap_or_default();
        return no("no_binary", format!("{name} is neither on its PATH nor at its old place"), "");
    }
    let (folder, there) = &ready.folder;
    if !there {
        return no("cwd_missing", format!("{folder} is gone"), "make the folder again, then restore");
    }
    match (mode, &ready.conversation) {
        (RestoreMode::Resume, Conversation::Missing(why)) => {
            no("transcript_missing", format!("its conversation is not on disk: {why}"), repick)
        }
        // what cannot be looked for is the provider's to find
        (RestoreMode::Resume, Conversation::Present { .. } | Conversation::Unknown(_))
        | (RestoreMode::Repick, _) => Verdict::Go,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StateName;
    use crate::record::testing::{epoch, sample};

    fn ready() -> Ready {
        Ready {
            argv: Ok(vec!["claude".into(), "--resume".into(), "s1".into()]),
            session_id: Some("s1".into()),
            binary: true,
            folder: ("/r".into(), true),
            conversation: Conversation::Present { path: "/c".into() },
            filed: None,
            twin: None,
            survivors: Vec::new(),
            elsewhere: None,
            unknown: None,
        }
    }

    fn word(ready: &Ready) -> String {
        match judge(&sample(StateName::Frozen), RestoreMode::Resume, ready) {
            Verdict::Go => "go".to_owned(),
            Verdict::Adopt(survivor) => format!("adopt:{}", survivor.name()),
            Verdict::No(outcome) => {
                assert_eq!(outcome.end, End::Refused);
                outcome.word
            }
        }
    }

    #[test]
    fn each_miss_has_its_name() {
        let process = ProcessId::new(9, "90");
        let lone = Survivor { pane: None, process: process.clone(), proven: false, attempt: false };
        let pane = Some((PaneId(4), epoch(), process));
        let attempt = Survivor { pane, attempt: true, ..lone.clone() };
        let proven = Survivor { proven: true, ..attempt.clone() };
        let by_hand = Survivor { attempt: false, ..proven.clone() };
        for (ready, told) in [
            (ready(), "go"),
            (Ready { argv: Err("no_session".into()), ..ready() }, "no_session"),
            (Ready { argv: Err("resume_unsupported:aider".into()), ..ready() }, "resume_unsupported:aider"),
            (Ready { binary: false, ..ready() }, "no_binary"),
            (Ready { folder: ("/r".into(), false), ..ready() }, "cwd_missing"),
            (
                Ready { conversation: Conversation::Missing("no_turn".into()), ..ready() },
                "transcript_missing",
            ),
            (Ready { conversation: Conversation::Unknown("x".into()), ..ready() }, "go"),
            (Ready { twin: Some((RecordId::from_bits(1), Some(PaneId(7)))), ..ready() }, "already_live:%7"),
            (Ready { survivors: vec![lone.clone()], ..ready() }, "survivor:9"),
            (Ready { survivors: vec![attempt.clone()], ..ready() }, "survivor:%4"),
            (Ready { survivors: vec![proven.clone()], ..ready() }, "adopt:%4"),
            (Ready { survivors: vec![proven, lone], ..ready() }, "survivor:%4"),
            (Ready { survivors: vec![by_hand], ..ready() }, "already_live:%4"),
            (Ready { elsewhere: Some(ProcessId::new(8, "80")), ..ready() }, "open_elsewhere"),
            (Ready { unknown: Some("no answer".into()), ..ready() }, "unknown"),
        ] {
            assert_eq!(word(&ready), told);
        }
    }
}
