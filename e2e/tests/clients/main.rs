//! Clients that nobody here wrote, against `fake-apiserver serve`.

mod life;
