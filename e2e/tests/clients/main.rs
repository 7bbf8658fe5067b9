//! Clients that nobody here wrote, against `fake-apiserver serve`.

mod crowd;
mod hour;
mod kubectl;
mod life;
mod scenarios;
mod story;
