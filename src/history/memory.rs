//! What a long-lived caller remembers of look-ups that gave nothing, so that it does not repeat them at every turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Environment, Located, locate};

/// How long a look-up that gave nothing is not repeated.
pub const RETRY: Duration = Duration::from_secs(10);
/// Answers that are kept.
const LIMIT: usize = 1_024;

/// Answers that were no conversation, by question, on the clock that never goes back. Its owner says what time it is.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    kept: BTreeMap<Question, (Instant, Located)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    kind: String,
    session_id: String,
    cwd: PathBuf,
    env: Environment,
}

impl Memory {
    /// Nothing is remembered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// [`locate`], unless the same question gave nothing less than [`RETRY`] ago: then the same answer, from memory.
    /// A conversation that is there is looked for each time.
    pub fn locate(
        &mut self,
        now: Instant,
        kind: &str,
        session_id: &str,
        cwd: &Path,
        env: &Environment,
    ) -> Located {
        self.kept.retain(|_, (at, _)| now.saturating_duration_since(*at) < RETRY);
        let question = Question {
            kind: kind.to_owned(),
            session_id: session_id.to_owned(),
            cwd: cwd.to_owned(),
            env: env.clone(),
        };
        if let Some((_, answer)) = self.kept.get(&question) {
            return answer.clone();
        }
        let answer = locate(kind, session_id, cwd, env);
        if !matches!(answer, Located::Present { .. }) && self.kept.len() < LIMIT {
            self.kept.insert(question, (now, answer.clone()));
        }
        answer
    }

    /// Forgets what is known of a session id: its provider said something new of it.
    pub fn forget(&mut self, session_id: &str) {
        self.kept.retain(|question, _| question.session_id != session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_not_looked_for_again_within_ten_seconds() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::default().with_home(home.path());
        let start = Instant::now();
        let mut memory = Memory::new();
        let cwd = Path::new("/srv/x");
        let ask = |memory: &mut Memory, seconds| {
            let there = memory.locate(start + Duration::from_secs(seconds), "claude", "0b5c-1", cwd, &env);
            matches!(there, Located::Present { .. })
        };
        assert!(!ask(&mut memory, 0));
        let folder = home.path().join(".claude/projects/-srv-x");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("0b5c-1.jsonl"), "{\"type\":\"user\",\"cwd\":\"/srv/x\"}\n").unwrap();
        assert!(!ask(&mut memory, 9), "from memory");
        assert!(ask(&mut memory, 10), "looked for again");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!ask(&mut memory, 10), "what is there is not remembered");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("0b5c-1.jsonl"), "{\"type\":\"user\",\"cwd\":\"/srv/x\"}\n").unwrap();
        memory.forget("another");
        assert!(!ask(&mut memory, 11));
        memory.forget("0b5c-1");
        assert!(ask(&mut memory, 11), "an event of its provider came");
    }
}
