//! A tmux in front of tmux, for stories that cut a coordinator short between two of its steps.
//!
//! ```text
//! let calls = Calls::of(&home, "coordinate");        // calls made by processes whose command line has this word
//! calls.none();                                      // only counts
//! calls.at(3, When::Before, Act::Kill);              // kill -9 of the caller in place of its third call
//! calls.at(3, When::After, Act::Do("tmux kill-pane -t %4")); // a shell line; `tmux` in it is the real one
//! calls.made();                                      // each call's words, in order
//! ```
//!
//! A story counts once with `none`, then goes through every call, before and after: what is enumerated is every step that
//! goes through tmux. Everybody else's calls, and those below a shell line, go straight through. A call that is killed
//! `Before` never reaches tmux; one `After` has reached it and been answered.

use std::fs;
use std::path::PathBuf;

use super::Home;

/// On which side of the call something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Tmux does not see the call (with [`Act::Kill`]).
    Before,
    /// Tmux has answered, the caller has not heard it.
    After,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// `kill -9` of the caller.
    Kill,
    /// `kill -STOP` of the caller: it hears the answer when it is continued.
    Stop,
    /// A shell line; `$TMUX_REAL` and `tmux` are the real tmux.
    Do(String),
    /// A shell line, then `kill -9` of the caller.
    DoAndKill(String),
}

/// The wrapper of one story.
#[derive(Debug)]
pub(crate) struct Calls {
    home: Home,
}

impl Calls {
    /// Puts a wrapper on PATH that looks at calls of processes whose command line has the word `caller`.
    pub(crate) fn of(home: &Home, caller: &str) -> Calls {
        let calls = Calls { home: home.clone() };
        fs::create_dir_all(calls.folder()).unwrap();
        home.wrap_tmux(&format!(
            r#"calls='{calls}'
tmux() {{ "$TMUX_REAL" "$@"; }}
case " $(tr '\0' ' ' </proc/$PPID/cmdline) " in
*' {caller} '*) ;;
*) exec "$TMUX_REAL" "$@" ;;
esac
# one at a time: two calls at once have a number each
number=$(flock "$calls/lock" sh -c 'n=$(cat "$1/count" 2>/dev/null); n=$((${{n:-0}} + 1)); echo $n >"$1/count"; echo $n' - "$calls")
printf '%s\n' "$(echo "$*" | tr '\n' ' ')" >"$calls/call.$number"
act() {{
    if [ -f "$calls/$number.$1" ]; then
        : >"$calls/done"
        . "$calls/$number.$1"
    fi
}}
act before
"$TMUX_REAL" "$@"
status=$?
act after
exit $status"#,
            calls = calls.folder().display(),
        ));
        calls
    }

    /// Nothing happens from here on; the count begins anew.
    pub(crate) fn none(&self) {
        for entry in fs::read_dir(self.folder()).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
    }

    /// From here on `act` happens at call `number` (the first is 1), and the count begins anew.
    pub(crate) fn at(&self, number: usize, when: When, act: &Act) {
        self.none();
        let side = match when {
            When::Before => "before",
            When::After => "after",
        };
        // killed, the caller's own child goes too: what it began to say is said to nobody
        let line = match act {
            Act::Kill => "kill -9 $PPID; exit 1\n".to_owned(),
            Act::Stop => "kill -STOP $PPID\n".to_owned(),
            Act::Do(line) => format!("{{ {line}\n}} >/dev/null 2>&1 </dev/null\n"),
            Act::DoAndKill(line) => {
                format!("{{ {line}\n}} >/dev/null 2>&1 </dev/null\nkill -9 $PPID; exit 1\n")
            }
        };
        fs::write(self.folder().join(format!("{number}.{side}")), line).unwrap();
    }

    /// Whether the act has happened.
    pub(crate) fn happened(&self) -> bool {
        self.folder().join("done").exists()
    }

    /// The words of each call so far, in order.
    pub(crate) fn made(&self) -> Vec<String> {
        (1..)
            .map_while(|number| fs::read_to_string(self.folder().join(format!("call.{number}"))).ok())
            .map(|words| words.trim_end().to_owned())
            .collect()
    }

    fn folder(&self) -> PathBuf {
        self.home.root().join("calls")
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.home.unwrap_tmux();
    }
}
