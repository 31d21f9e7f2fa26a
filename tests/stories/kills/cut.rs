//! How a coordinator is cut: at a call to tmux by a wrapper in tmux's place, at a write of the store by strace, which sends the
//! signal as the kernel takes the rename. The program is the shipped one; nothing in it knows of this.
//!
//! The wrapper acts on calls made under `$CUT`, a folder of the cut's own; everybody else's calls go straight through.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{At, Cut, How, Side};
use crate::support::Home;
use crate::support::proc::{self, Process};

/// Counts the calls of coordinators below `$CUT`; at number `at` sends the caller the signal `how`, before or after the call. Of
/// a caller that is stopped, the call goes on once the story says so: it was on its way.
const WRAPPER: &str = r#"
[ -n "$CUT" ] || exec "$TMUX_REAL" "$@"
case " $(tr '\0' ' ' </proc/$PPID/cmdline) " in
*' coordinate '*) ;;
*) exec "$TMUX_REAL" "$@" ;;
esac
n=$(flock "$CUT/lock" sh -c 'n=$(cat "$1/count" 2>/dev/null); n=$((${n:-0} + 1)); echo $n >"$1/count"; echo $n' - "$CUT")
printf '%s\n' "$(echo "$*" | tr '\n' ' ')" >"$CUT/call.$n"
[ "$n" = "$(cat "$CUT/at")" ] || exec "$TMUX_REAL" "$@"
how=$(cat "$CUT/how")
if [ -e "$CUT/after" ]; then "$TMUX_REAL" "$@" >"$CUT/out" 2>"$CUT/err"; code=$?; fi
: >"$CUT/hitting"
kill -$how $PPID
echo $PPID >"$CUT/hit.new"
mv "$CUT/hit.new" "$CUT/hit"
[ "$how" = KILL ] && exit 1
read -r word <"$CUT/go"
[ -e "$CUT/after" ] || exec "$TMUX_REAL" "$@"
cat "$CUT/out"
cat "$CUT/err" >&2
exit $code
"#;

/// Puts the wrapper in tmux's place.
pub(super) fn wrap(home: &Home) {
    home.wrap_tmux(WRAPPER);
}

/// What is asked of `ait`, at the front and of the coordinator itself.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// `freeze ID --force`.
    pub(super) front: Vec<String>,
    /// `freeze --policy force ID`.
    pub(super) coordinator: Vec<String>,
}

/// One operation under way, with a cut before it.
#[derive(Debug)]
pub(super) struct Running {
    cut: Option<Cut>,
    folder: PathBuf,
    child: Child,
    /// Open for both, so that nobody waits for the other.
    go: File,
    /// The process that was hit, once it was.
    hit: Option<u32>,
}

impl Running {
    /// Starts it; `folder` is new and the cut's own. Without a cut its steps are counted.
    pub(super) fn start(home: &Home, folder: &Path, words: &Words, cut: Option<Cut>) -> Running {
        fs::create_dir(folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let call = match cut.map(|cut| cut.at) {
            Some(At::Call(number)) => number,
            Some(At::Write(..)) | None => 0,
        };
        write("at", &call.to_string());
        if let Some(cut) = cut {
            write("how", signal(cut));
            if cut.side == Side::After {
                write("after", "");
            }
        }
        let path = folder.join("go");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let go = File::options().read(true).write(true).open(&path).unwrap();
        let mut command = match cut.map(|cut| cut.at) {
            Some(At::Call(_)) => home.ait_command(&words.front),
            Some(At::Write(_, rename)) => {
                // one that is to be killed after it is stopped there first
                let word = if cut.is_some_and(|cut| cut.side == Side::Before) { "KILL" } else { "STOP" };
                traced(home, folder, words, &format!("{RENAME}:signal={word}:when={rename}"))
            }
            None => traced(home, folder, words, ""),
        };
        command.env("CUT", folder);
        let said = File::create(folder.join("said")).unwrap();
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        Running { cut, folder: folder.to_owned(), child: command.spawn().unwrap(), go, hit: None }
    }

    /// The process that was hit, once it was. One that is to be killed is dead then.
    pub(super) fn hit(&mut self) -> Option<u32> {
        if self.hit.is_none() {
            self.hit = match self.cut?.at {
                At::Call(_) => read(&self.folder.join("hit")).trim().parse().ok(),
                At::Write(..) => self.hit_by_strace(),
            };
        }
        self.hit
    }

    fn hit_by_strace(&self) -> Option<u32> {
        let log = read(&self.folder.join("strace"));
        if log.contains("+++ killed by SIGKILL") {
            return Some(0);
        }
        if !log.contains("--- stopped by SIGSTOP") {
            return None;
        }
        let coordinator = proc::children(self.child.id()).into_iter().next()?;
        if self.cut.is_some_and(|cut| cut.how == How::Kill) {
            coordinator.signal(Signal::KILL);
        }
        Some(coordinator.pid)
    }

    /// What was to be killed besides is: the call of a caller that is stopped goes on.
    pub(super) fn call_on(&mut self) {
        self.go.write_all(b"go\n").unwrap();
    }

    /// Lets one that was stopped go on, or kills it.
    pub(super) fn let_go(&self) {
        let (Some(cut), Some(hit)) = (self.cut, self.hit) else { return };
        let signal = match cut.how {
            How::Kill => return,
            How::Stop => Signal::CONT,
            How::StopKill => Signal::KILL,
        };
        if let Some(process) = Process::of(hit) {
            process.signal(signal);
        }
    }

    /// Whether the command has ended. One that ends by its cut may be faster than the word of it, which is waited for.
    pub(super) fn ended(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap().is_some();
        ended && (!self.folder.join("hitting").exists() || self.hit().is_some())
    }

    /// What it did, for a reader.
    pub(super) fn told(&self) -> String {
        let read = |name: &str| read(&self.folder.join(name));
        format!("{}\n{:#?}\n{}", read("said"), self.steps(), read("strace"))
    }

    /// The steps that were made, once it has ended.
    pub(super) fn steps(&self) -> Steps {
        let calls = (1..)
            .map_while(|number| fs::read_to_string(self.folder.join(format!("call.{number}"))).ok())
            .map(|words| words.trim_end().to_owned())
            .collect();
        let log = read(&self.folder.join("strace"));
        let renames = log.lines().filter(|line| line.starts_with(&format!("{RENAME}(")));
        let writes = renames
            .enumerate()
            .filter(|(_, line)| line.contains("/agent_sessions.json\"") && line.contains("= 0"));
        Steps { calls, writes: writes.map(|(at, _)| at + 1).collect() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            if let Some(hit) = self.hit.and_then(Process::of) {
                hit.signal(Signal::KILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What a coordinator does step by step.
#[derive(Debug)]
pub(super) struct Steps {
    /// The words of each call to tmux, in order.
    pub(super) calls: Vec<String>,
    /// Which of its renames write the store.
    pub(super) writes: Vec<usize>,
}

impl Steps {
    /// Whether another time there may be fewer calls than this: a look that was had before is not always needed again.
    pub(super) fn may_be_missed(&self, at: At) -> bool {
        let At::Call(number) = at else { return false };
        let distinct: BTreeSet<&String> = self.calls.iter().collect();
        number > distinct.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<At> {
        let calls = (1..=self.calls.len()).map(At::Call);
        let writes = self.writes.iter().enumerate().map(|(at, rename)| At::Write(at + 1, *rename));
        calls.chain(writes).collect()
    }
}

/// The system call that puts a file in the place of another, as the C library makes it here. strace counts each kind of call
/// for itself.
const RENAME: &str = if cfg!(target_arch = "x86_64") { "rename" } else { "renameat" };

/// The coordinator itself below strace, which does not follow what it starts.
fn traced(home: &Home, folder: &Path, words: &Words, inject: &str) -> Command {
    let mut command = home.command("strace");
    command.args(["-qq", "-I", "2", "-o"]).arg(folder.join("strace"));
    command.args(["-e", &format!("trace={RENAME}")]);
    if !inject.is_empty() {
        command.args(["-e", &format!("inject={inject}")]);
    }
    command.arg("--").arg(crate::support::AIT).arg("coordinate").args(&words.coordinator);
    command
}

fn signal(cut: Cut) -> &'static str {
    match cut.how {
        How::Kill => "KILL",
        How::Stop | How::StopKill => "STOP",
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
