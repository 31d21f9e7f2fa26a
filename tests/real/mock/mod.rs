//! The project's own mock model server: the streaming protocols of the agents, on loopback, steered by the prompt.
//!
//! It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, answers what [`plan`] works out, and
//! keeps every request, so that a story can see which earlier turns an agent still knows.

mod anthropic;
mod chat;
mod gemini;
pub(crate) mod plan;
mod responses;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, Response, StatusCode, Uri, header};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;

use plan::{Plan, Turn, Wait, Who};

/// How long an answer is held at most.
const HELD_AT_MOST: Duration = Duration::from_secs(120);
/// The largest request taken, in bytes.
const LARGEST_REQUEST: usize = 64 << 20;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The conversation in it, oldest first.
    pub(crate) turns: Vec<Turn>,
    /// What is answered.
    pub(crate) plan: Plan,
}

impl Asked {
    /// Whether a turn of `who` holds `words`.
    pub(crate) fn knows(&self, who: Who, words: &str) -> bool {
        self.turns.iter().any(|turn| turn.who == who && turn.text.contains(words))
    }
}

/// An answer as its protocol writes it.
#[derive(Debug)]
enum Answer {
    /// A status and a JSON body, after the wait.
    Whole(StatusCode, Value),
    /// Events before the wait, events after it.
    Stream(Vec<String>, Vec<String>),
}

/// What was asked so far and what is let go.
#[derive(Debug)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    /// Paths nobody answers.
    strange: Mutex<Vec<String>>,
    gates: watch::Sender<BTreeSet<String>>,
}

/// The running server; it ends with the story.
#[derive(Debug)]
pub(crate) struct Mock {
    port: u16,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Mock {
    /// Starts one on a free port of the loopback of the calling thread's network.
    pub(crate) fn start() -> Mock {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (gates, _) = watch::channel(BTreeSet::new());
        let shared = Arc::new(Shared { asked: Mutex::default(), strange: Mutex::default(), gates });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let router = Router::new()
                    .fallback(take)
                    .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
                    .with_state(served);
                // connections that agents keep open do not hold up the end
                tokio::select! {
                    ended = async { axum::serve(listener, router).await } => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Mock { port, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The paths that were asked for and are not known.
    pub(crate) fn strange(&self) -> Vec<String> {
        locked(&self.shared.strange).clone()
    }

    /// The newest request of a conversation whose prompt holds `words`, if there is one.
    pub(crate) fn heard(&self, words: &str) -> Option<Asked> {
        let asked = locked(&self.shared.asked);
        asked.iter().rev().find(|asked| asked.plan.main && asked.plan.prompt.contains(words)).cloned()
    }

    /// Lets go the answers that hold `name`, those to come as well.
    pub(crate) fn let_go(&self, name: &str) {
        self.shared.gates.send_modify(|open| open.extend([name.to_owned()]));
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the mock server failed");
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request, whatever its path.
async fn take(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Bytes) -> Response<Body> {
    let path = uri.path().trim_end_matches('/');
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    if method != Method::POST {
        return if path.ends_with("/models") {
            whole(StatusCode::OK, &models(path))
        } else {
            unknown(&shared, &method, path)
        };
    }
    let streamed = request["stream"] == true;
    let (protocol, (turns, tools)) = match path {
        _ if path.ends_with("/messages/count_tokens") => {
            return whole(StatusCode::OK, &json!({"input_tokens": 100}));
        }
        _ if path.contains(":countTokens") => return whole(StatusCode::OK, &json!({"totalTokens": 100})),
        _ if path.ends_with("/messages") => ("anthropic", anthropic::read(&request)),
        _ if path.ends_with("/responses") => ("responses", responses::read(&request)),
        _ if path.ends_with("/chat/completions") => ("chat", chat::read(&request)),
        _ if path.contains("enerateContent") => ("gemini", gemini::read(&request)),
        _ => return unknown(&shared, &method, path),
    };
    let plan = Plan::of(&turns, &tools);
    locked(&shared.asked).push(Asked { turns, plan: plan.clone() });
    let answer = match (plan.error, protocol) {
        (Some(status), _) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Answer::Whole(status, refusal(status))
        }
        (None, "anthropic") => anthropic::answer(&request, &plan, streamed),
        (None, "responses") => responses::answer(&request, &plan, streamed),
        (None, "chat") => chat::answer(&request, &plan, streamed),
        (None, _) => gemini::answer(&request, &plan, path.contains(":stream")),
    };
    let opened = shared.gates.subscribe();
    match answer {
        Answer::Whole(status, body) => {
            pass(opened, plan.wait).await;
            whole(status, &body)
        }
        Answer::Stream(before, after) => streaming(opened, plan.wait, before, after),
    }
}

/// Waits as planned: for a gate, or a time.
async fn pass(mut opened: watch::Receiver<BTreeSet<String>>, wait: Wait) {
    match wait {
        Wait::No => {}
        Wait::Hold(name) => {
            let _ = tokio::time::timeout(HELD_AT_MOST, opened.wait_for(|open| open.contains(&name))).await;
        }
        Wait::Delay(span) => {
            let _ = tokio::time::timeout(span.min(HELD_AT_MOST), std::future::pending::<()>()).await;
        }
    }
}

/// An event stream: `before` at once, the wait, `after`.
fn streaming(
    opened: watch::Receiver<BTreeSet<String>>,
    wait: Wait,
    before: Vec<String>,
    after: Vec<String>,
) -> Response<Body> {
    let (sender, receiver) = mpsc::channel::<Result<String, Infallible>>(16);
    tokio::spawn(async move {
        for event in before {
            if sender.send(Ok(event)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            () = pass(opened, wait) => {}
            () = sender.closed() => return,
        }
        for event in after {
            if sender.send(Ok(event)).await.is_err() {
                return;
            }
        }
    });
    let body = Body::from_stream(ReceiverStream::new(receiver));
    response(StatusCode::OK, "text/event-stream; charset=utf-8", body)
}

fn whole(status: StatusCode, body: &Value) -> Response<Body> {
    response(status, "application/json", Body::from(body.to_string()))
}

fn response(status: StatusCode, kind: &str, body: Body) -> Response<Body> {
    let parts = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
    parts.header("request-id", "req_mock").header("x-request-id", "req_mock").body(body).unwrap()
}

fn unknown(shared: &Shared, method: &Method, path: &str) -> Response<Body> {
    // agents ask a base address whether it is there
    if method == Method::HEAD {
        return whole(StatusCode::OK, &json!({}));
    }
    locked(&shared.strange).push(format!("{method} {path}"));
    let error = json!({"type": "not_found_error", "message": format!("the mock knows no {path}")});
    whole(StatusCode::NOT_FOUND, &json!({"type": "error", "error": error}))
}

/// A refusal in a shape that all of them read.
fn refusal(status: StatusCode) -> Value {
    let kind = if status.as_u16() == 529 { "overloaded_error" } else { "api_error" };
    let error = json!({"type": kind, "message": "a refusal of the mock", "code": status.as_u16(), "status": "UNAVAILABLE"});
    json!({"type": "error", "error": error})
}

fn models(path: &str) -> Value {
    if path.contains("v1beta") {
        let model =
            json!({"name": "models/gemini-2.5-pro", "supportedGenerationMethods": ["generateContent"]});
        return json!({"models": [model]});
    }
    let model = |name: &str| json!({"id": name, "object": "model", "type": "model", "display_name": name, "created": 1, "owned_by": "mock"});
    json!({"object": "list", "has_more": false, "data": [model("mock-model"), model("claude-sonnet-4-5-20250929")]})
}

/// An event of a stream whose events have names.
fn event(name: &str, mut data: Value) -> String {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}

/// An event of a stream whose events have none.
fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// The names of the tools a request offers, from their list and where in each the name stands.
fn tool_names(tools: &Value, name: impl Fn(&Value) -> Option<String>) -> Vec<String> {
    tools.as_array().into_iter().flatten().filter_map(name).collect()
}

/// A list of the request, empty when it is none.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// An id no other answer has.
fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", uuid::Uuid::new_v4().simple())
}
