//! What the agent is doing, by every source there is.

use super::Performer;
use crate::coordinator::Sight;

impl Performer<'_> {
    pub(super) async fn examine(&self) -> Sight {
        Sight::unknown()
    }
}
