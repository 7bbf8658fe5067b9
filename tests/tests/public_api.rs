//! The public API of the watcher, as one text, so that changes are visible in a review.
//!
//! Read from the sources, without private items: every `pub` item is reachable, because `unreachable_pub` is a
//! warning, and warnings are errors in the gate. Tools based on rustdoc need a nightly compiler.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what Rust may come to have besides is not used here"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, File, ImplItem, Item, ItemImpl, Type, Visibility};
use tests::repository;

#[test]
fn the_watchers_public_items_are_these() {
    let source = repository::root().join("watcher/src");
    let files: Vec<(PathBuf, Vec<Item>)> = files(&source)
        .into_iter()
        .map(|file| {
            let text = std::fs::read_to_string(&file).expect("a file of the repository");
            let parsed = syn::parse_file(&text).expect("it compiles");
            (file, parsed.items)
        })
        .collect();
    let hidden: BTreeSet<String> = files
        .iter()
        .flat_map(|(_, items)| items)
        .filter_map(hidden)
        .collect();
    let mut api = String::new();
    for (file, items) in files {
        let items: Vec<Item> = items.into_iter().filter_map(|item| seen(item, &hidden)).collect();
        if items.is_empty() {
            continue;
        }
        let name = file.strip_prefix(&source).expect("it lies below").display();
        let shown = prettyplease::unparse(&File {
            shebang: None,
            attrs: Vec::new(),
            items,
        });
        writeln!(api, "// {name}\n{shown}").unwrap();
    }
    insta::assert_snapshot!("watcher", api);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("a folder of the repository").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the name of a private type.
fn hidden(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) if !is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Enum(item) if !is_public(&item.vis) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// Returns the public part of an item; `None` if it is private.
fn seen(mut item: Item, hidden: &BTreeSet<String>) -> Option<Item> {
    match &mut item {
        Item::Fn(function) => {
            is_public(&function.vis).then_some(())?;
            function.attrs.retain(is_shown);
            *function.block = syn::parse_quote!({});
        }
        Item::Struct(item) => {
            is_public(&item.vis).then_some(())?;
            item.attrs.retain(is_shown);
            hide(&mut item.fields);
        }
        Item::Enum(item) => {
            is_public(&item.vis).then_some(())?;
            item.attrs.retain(is_shown);
            for variant in &mut item.variants {
                variant.attrs.retain(is_shown);
                variant.fields.iter_mut().for_each(|field| field.attrs.clear());
            }
        }
        Item::Trait(item) => {
            is_public(&item.vis).then_some(())?;
            item.attrs.retain(is_shown);
            for member in &mut item.items {
                if let syn::TraitItem::Fn(function) = member {
                    function.attrs.retain(is_shown);
                    function.default = function.default.take().map(|_| syn::parse_quote!({}));
                }
            }
        }
        Item::Impl(block) => return is_seen_impl(block, hidden).then_some(item),
        Item::Mod(module) => {
            is_public(&module.vis).then_some(())?;
            module.attrs.retain(is_shown);
        }
        Item::Use(import) => {
            is_public(&import.vis).then_some(())?;
            import.attrs.retain(is_shown);
        }
        Item::Const(constant) => {
            is_public(&constant.vis).then_some(())?;
            constant.attrs.retain(is_shown);
        }
        Item::Type(alias) => {
            is_public(&alias.vis).then_some(())?;
            alias.attrs.retain(is_shown);
        }
        _ => return None,
    }
    Some(item)
}

/// Keeps the public part of an impl; returns false if it has none.
fn is_seen_impl(block: &mut ItemImpl, hidden: &BTreeSet<String>) -> bool {
    let of = match &*block.self_ty {
        Type::Reference(reference) => &*reference.elem,
        of => of,
    };
    if let Type::Path(of) = of
        && of
            .path
            .segments
            .last()
            .is_some_and(|last| hidden.contains(&last.ident.to_string()))
    {
        return false;
    }
    let is_inherent = block.trait_.is_none();
    block.attrs.retain(is_shown);
    block.items.retain_mut(|member| match member {
        ImplItem::Fn(function) => {
            function.attrs.retain(is_shown);
            function.block = syn::parse_quote!({});
            is_inherent && is_public(&function.vis)
        }
        ImplItem::Const(constant) => is_inherent && is_public(&constant.vis),
        ImplItem::Type(_) => true,
        _ => false,
    });
    !is_inherent || !block.items.is_empty()
}

/// Marks a struct with private fields, which callers cannot construct, by a last field.
fn hide(fields: &mut Fields) {
    let named = match fields {
        Fields::Named(named) => named,
        Fields::Unnamed(unnamed) => {
            let private = unnamed.unnamed.iter_mut().filter(|field| !is_public(&field.vis));
            private.for_each(|field| field.ty = syn::parse_quote!(Private));
            return;
        }
        Fields::Unit => return,
    };
    let all = named.named.len();
    named.named = std::mem::take(&mut named.named)
        .into_iter()
        .filter(|field| is_public(&field.vis))
        .collect();
    named.named.iter_mut().for_each(|field| field.attrs.clear());
    if named.named.len() < all {
        named.named.push(syn::parse_quote!(private: Private));
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns true for attributes that matter to callers.
fn is_shown(attribute: &Attribute) -> bool {
    ["cfg", "derive", "must_use", "non_exhaustive"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}
