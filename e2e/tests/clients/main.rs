//! Clients that nobody here wrote, against `fake-apiserver serve`.

mod hour;
mod kubectl;
mod life;
mod scenarios;
mod story;
