//! What hooks could not write: drained when it appears, and again until it could be written.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};

use super::scribe::Job;

/// How long a store that could not be written is left alone.
const PAUSE: Duration = Duration::from_secs(2);

/// Starts the task that drains whenever it is told. It ends with the scribe.
pub(super) fn start(jobs: mpsc::Sender<Job>) -> Arc<Notify> {
    let told = Arc::new(Notify::new());
    // what was there before
    told.notify_one();
    let heard = Arc::clone(&told);
    tokio::spawn(async move {
        loop {
            heard.notified().await;
            loop {
                let (done, drained) = oneshot::channel();
                if jobs.send(Job::Drain(done)).await.is_err() {
                    return;
                }
                match drained.await {
                    Ok(true) => break,
                    Ok(false) => tokio::time::sleep(PAUSE).await,
                    Err(_) => return,
                }
            }
        }
    });
    told
}
