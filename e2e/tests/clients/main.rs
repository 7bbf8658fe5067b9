//! Clients from other projects, against `fake-apiserver serve`.

mod crowd;
mod hour;
mod kubectl;
mod library;
mod life;
mod scenarios;
mod story;
