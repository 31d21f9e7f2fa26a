//! Whose turn it is, when the server that several Codex share runs the hook: the agent's with that conversation, or, where it
//! has no conversation yet, the only one that works in that folder. Never a guess.

use std::path::{Path, PathBuf};

use crate::lifecycle::shared::{self, KIND};
use crate::process::Facts;
use crate::provider::Catalog;
use crate::record::{ProcessId, Record};

use super::line::{Line, Speaker, agent_at};

/// A Codex on the shared server.
#[derive(Debug, Clone)]
struct Terminal {
    line: Option<Line>,
    /// The folder it works in; `None` when nothing says, and then it may be any.
    cwd: Option<PathBuf>,
    /// Its conversation, as its record or its arguments say; empty if neither does.
    session_id: String,
}

/// The agent of the turn that `server` runs, of the conversation `session_id` in the folder `cwd`. `record_of` gives the record
/// of an agent.
///
/// # Errors
/// Why nobody's it is, as a lower-case fragment.
pub(super) fn line(
    server: &ProcessId,
    session_id: &str,
    cwd: &str,
    catalog: &Catalog,
    record_of: impl Fn(&Line) -> Option<Record>,
) -> Result<Line, &'static str> {
    let home = shared::home_of(server.pid).ok_or("the shared server does not say which home it is of")?;
    let terminals: Vec<Terminal> = shared::terminals(&home, catalog)
        .into_iter()
        .map(|facts| {
            let line = match agent_at(facts.id.pid, KIND, catalog) {
                Speaker::Agent(line) => Some(line),
                _ => None,
            };
            let recorded = line.as_ref().and_then(&record_of).map(|record| record.codeagent_session_id);
            let argued = || catalog.session_id(KIND, &facts.argv);
            let session_id = recorded.filter(|id| !id.is_empty()).or_else(argued).unwrap_or_default();
            Terminal { line, cwd: folder(&facts), session_id }
        })
        .collect();
    let chosen = choose(&terminals, session_id, Path::new(cwd))?;
    chosen.line.clone().ok_or("its agent is in no pane of tmux, or below another one")
}

/// The folder a Codex was asked to work in.
fn folder(facts: &Facts) -> Option<PathBuf> {
    let cwd = facts.cwd.as_deref()?;
    let mut words = facts.argv.iter().take_while(|word| word.as_slice() != b"--");
    while let Some(word) = words.next() {
        let text = std::str::from_utf8(word).unwrap_or_default();
        match text {
            "--worktree" => return None,
            "-C" | "--cd" => return Some(cwd.join(std::str::from_utf8(words.next()?).ok()?)),
            _ => {}
        }
        if let Some(named) = text.strip_prefix("--cd=") {
            return Some(cwd.join(named));
        }
    }
    Some(cwd.to_owned())
}

fn choose<'t>(terminals: &'t [Terminal], session_id: &str, cwd: &Path) -> Result<&'t Terminal, &'static str> {
    if session_id.is_empty() {
        return Err("the shared server does not say which conversation it is");
    }
    let has_it: Vec<&Terminal> = terminals.iter().filter(|one| one.session_id == session_id).collect();
    match has_it.as_slice() {
        [one] => return Ok(one),
        [] => {}
        _ => return Err("several agents on the shared server have its conversation"),
    }
    let may_be = |one: &&Terminal| one.cwd.as_deref().is_none_or(|at| at == cwd);
    let here: Vec<&Terminal> = terminals.iter().filter(may_be).collect();
    match here.as_slice() {
        [one] if one.session_id.is_empty() && one.cwd.is_some() => Ok(one),
        [_] => Err("the agent on the shared server in its folder has another conversation"),
        [] => Err("no agent on the shared server works in its folder"),
        _ => Err("several agents on the shared server work in its folder"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cwd: &str, session_id: &str) -> Terminal {
        Terminal { line: None, cwd: Some(cwd.into()), session_id: session_id.to_owned() }
    }

    #[test]
    fn the_turn_is_the_one_with_its_conversation_or_the_only_one_in_its_folder() {
        let told = |terminals: &[Terminal], id: &str, cwd: &str| match choose(terminals, id, Path::new(cwd)) {
            Ok(one) => format!("{} {}", one.cwd.as_ref().unwrap().display(), one.session_id),
            Err(why) => why.split(' ').take(2).collect::<Vec<_>>().join(" "),
        };
        let two = [at("/a", "one"), at("/b", "")];
        assert_eq!(told(&two, "one", "/b"), "/a one", "by its conversation, wherever it works by now");
        assert_eq!(told(&two, "new", "/b"), "/b ");
        assert_eq!(told(&two, "new", "/a"), "the agent", "it may be of a window that nobody sees");
        assert_eq!(told(&two, "new", "/c"), "no agent");
        assert_eq!(told(&two, "", "/b"), "the shared");
        let twins = [at("/b", ""), at("/b", "two")];
        assert_eq!(told(&twins, "two", "/b"), "/b two");
        assert_eq!(told(&twins, "new", "/b"), "several agents");
        let unknown = Terminal { cwd: None, ..at("", "") };
        assert_eq!(told(&[at("/b", ""), unknown], "new", "/b"), "several agents", "it may work there too");
        assert_eq!(told(&[at("/a", "one"), at("/b", "one")], "one", "/a"), "several agents");
        assert_eq!(told(&[], "one", "/a"), "no agent");
    }
}
