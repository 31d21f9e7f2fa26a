//! The process that brings lost agents back: started, listened to until it ends, never waited for by the loop.

use std::ffi::OsString;

use super::Driver;
use super::scribe::Job;
use crate::lifecycle::host;
use crate::record::RecordId;

impl Driver {
    /// Starts it. It outlives us; at its end, or where it cannot be started, the supervisor hears the book as it is then.
    pub(super) fn recover(&self, records: &[RecordId]) {
        let (program, jobs) = (self.program.clone(), self.jobs.clone());
        let mut arguments: Vec<OsString> = ["recover", "--unasked"].map(OsString::from).to_vec();
        arguments.extend(records.iter().map(|id| id.to_string().into()));
        tokio::spawn(async move {
            match host::spawn(&program, arguments) {
                Ok(mut hosted) => {
                    while let Some(told) = hosted.next().await {
                        tracing::info!(?told, "recovery");
                    }
                    if let Err(error) = hosted.ended().await {
                        tracing::warn!(%error, "the end of a recovery is not told");
                    }
                }
                Err(error) => tracing::error!(%error, "a recovery cannot be started"),
            }
            // the thread lives as long as we do
            let _ = jobs.send(Job::Book { ended: true }).await;
        });
    }
}
