//! What the user has set about the end of panes, which decides whether a pane may be kept when its agent dies.
//!
//! A user's `pane-died` or `pane-exited` hook would fire differently under `remain-on-exit`, and a value of theirs on the
//! pane itself is theirs: in both cases the option is left alone. Hooks are looked for, never read into or changed.

use bstr::ByteSlice;
use tmux_control::{Command, PaneId};

use super::client::ReplyError;
use crate::world::rows::RemainOnExit;

/// What holds for one pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeathSettings {
    /// A `pane-died` or `pane-exited` hook is set for it, at whatever level.
    pub hooked: bool,
    /// The pane's own `remain-on-exit`, by whomever it was set.
    pub own: Option<RemainOnExit>,
    /// `remain-on-exit` as it holds for the pane's window, its own or inherited: what the pane has without a value of its own.
    pub inherited: RemainOnExit,
}

impl DeathSettings {
    /// Whether `ait` may keep this pane when its process ends: no hook would notice, and the user has set nothing on it.
    pub fn may_be_kept(&self) -> bool {
        !self.hooked && self.own.is_none()
    }
}

/// The questions about one pane; send all, and give the answers to [`read`] in the same order. The hooks belong to windows and
/// panes (`-gw`, `-w`, `-p`); the global and session levels are asked too, since a version may keep them there.
pub fn questions(pane: PaneId) -> [Command; 7] {
    let pane = pane.to_string();
    let hooks = |flags: &[&str]| Command::new("show-hooks").args(flags);
    [
        hooks(&["-g"]),
        hooks(&["-gw"]),
        hooks(&["-t", &pane]),
        hooks(&["-w", "-t", &pane]),
        hooks(&["-p", "-t", &pane]),
        Command::new("show-options").args(["-p", "-q", "-v", "-t", &pane, "remain-on-exit"]),
        // a format would give the pane's own value, behind which the user's is not seen
        Command::new("show-options").args(["-w", "-A", "-q", "-v", "-t", &pane, "remain-on-exit"]),
    ]
}

/// Reads the answers to [`questions`]. `None` when one is missing or not understood: then nothing is known, and nothing is to
/// be set.
pub fn read(answers: &[Result<Vec<u8>, ReplyError>; 7]) -> Option<DeathSettings> {
    let [hooks @ .., own, inherited] = answers;
    let mut hooked = false;
    for answer in hooks {
        hooked |= names_hook(answer.as_ref().ok()?);
    }
    let own = match word(own.as_ref().ok()?) {
        b"" => None,
        word => Some(RemainOnExit::parse(word)?),
    };
    let inherited = RemainOnExit::parse(word(inherited.as_ref().ok()?))?;
    Some(DeathSettings { hooked, own, inherited })
}

/// A hook that is set is listed with an index, `pane-died[0] command`; one that is not is a bare name. Other hooks hold commands
/// over several lines, one of which may look like this: that errs on the side of leaving the pane alone.
fn names_hook(answer: &[u8]) -> bool {
    answer
        .lines()
        .any(|line| [&b"pane-died["[..], b"pane-exited["].iter().any(|start| line.starts_with(start)))
}

/// The answer's line; tmux may have written a `%message` before it.
fn word(answer: &[u8]) -> &[u8] {
    answer.lines().find(|line| !line.starts_with(b"%")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(hooks: [&[u8]; 5], own: &[u8], inherited: &[u8]) -> [Result<Vec<u8>, ReplyError>; 7] {
        let [a, b, c, d, e] = hooks;
        [a, b, c, d, e, own, inherited].map(|answer| Ok(answer.to_vec()))
    }

    #[test]
    fn nothing_set_may_be_kept() {
        let bare = b"pane-died\npane-exited\npane-focus-in[0] run-shell x\n".as_slice();
        let seen = read(&answers([b"", bare, b"", b"", b""], b"", b"off\n")).unwrap();
        assert_eq!(seen, DeathSettings { hooked: false, own: None, inherited: RemainOnExit::Off });
        assert!(seen.may_be_kept());
    }

    #[test]
    fn a_hook_at_any_level_forbids_it() {
        for level in 0..5 {
            for hook in [&b"x[0] y\npane-died[7] run-shell x\n"[..], b"pane-exited[0] display x\n"] {
                let mut hooks = [&b""[..]; 5];
                hooks[level] = hook;
                assert!(!read(&answers(hooks, b"", b"off\n")).unwrap().may_be_kept(), "level {level}");
            }
        }
    }

    #[test]
    fn a_value_on_the_pane_is_theirs() {
        for own in [&b"off\n"[..], b"on\n", b"failed\n"] {
            assert!(!read(&answers([b""; 5], own, b"on\n")).unwrap().may_be_kept());
        }
    }

    #[test]
    fn a_missing_answer_is_no_knowledge() {
        for missing in 0..7 {
            let mut answers = answers([b""; 5], b"", b"off\n");
            answers[missing] = Err(ReplyError::Unanswered);
            assert_eq!(read(&answers), None);
        }
        assert_eq!(read(&answers([b""; 5], b"", b"maybe\n")), None);
    }
}
