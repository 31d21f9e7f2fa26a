//! What is said of a lost record: whether it comes back by itself, why not, and what to type.

use crate::record::{Policy, Record};
use crate::supervisor::recovery::{Book, Choice, Policies, choose};

/// What the user wants, and what was tried.
#[derive(Debug, Default)]
pub(super) struct Offers {
    /// The settings; `None` when they cannot be read.
    pub(super) policies: Option<Policies>,
    /// What was tried of each loss.
    pub(super) book: Book,
}

impl Offers {
    /// The words for a lost record, its command among them; `None` when nothing is to be said.
    pub(super) fn words(&self, record: &Record) -> Option<String> {
        // with settings that cannot be read nothing is done unasked
        let none = Policies { servers: Policy::Offer, agents: Policy::Offer };
        let policies = self.policies.unwrap_or(none);
        Some(match choose(record, policies, self.book.get(&record.id))? {
            Choice::Recover => "it is brought back while a supervisor runs".to_owned(),
            Choice::Offer(why) => {
                format!("not brought back: {}; `ait recover {}` does", why.words(), record.id)
            }
            Choice::Keep => format!("kept, as the settings say; `ait recover {}` brings it back", record.id),
        })
    }
}
