//! What the agent is doing, by every source there is: its hook, its provider's own list of processes, its title and screen.

use super::Performer;
use crate::coordinator::{Mood, Sight};
use crate::history::{self, Status};

impl Performer<'_> {
    pub(super) async fn examine(&self) -> Sight {
        let mut sight = Sight::unknown();
        let Some(record) = &self.record else { return sight };
        let agent = record.agent_process();
        if let Some(entry) = agent.and_then(|agent| history::registry(&agent, &self.environment())) {
            let (mood, background) = match entry.status {
                Some(Status::Busy) => (Mood::Working, false),
                Some(Status::Shell) => (Mood::Ready, true),
                Some(Status::Waiting) => (Mood::Asking, false),
                Some(Status::Idle) => (Mood::Ready, false),
                None => (Mood::Unknown, false),
            };
            if mood != Mood::Unknown {
                sight.mood = mood;
                sight.source = "registry".to_owned();
                sight.background = background;
                sight.since = entry.status_at.and_then(|at| {
                    std::time::Duration::try_from(jiff::Timestamp::now().duration_since(at)).ok()
                });
            }
        }
        sight
    }
}
