package io.github.fakeapiserver;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;

/** Finds the program: in FAKE_APISERVER_BIN, in the jar for this platform, or on PATH. */
final class Binary {
    private static final String NAME = "fake-apiserver";

    private Binary() {}

    /** Returns a path, or a name to find on PATH. A program in a jar is unpacked once, into the cache of the user. */
    static String find() {
        String named = System.getenv("FAKE_APISERVER_BIN");
        if (named != null && !named.isEmpty()) {
            return named;
        }
        try {
            Path unpacked = unpacked(platform(), cache());
            return unpacked == null ? NAME : unpacked.toString();
        } catch (IOException error) {
            throw new UncheckedIOException("cannot unpack " + NAME + ": set FAKE_APISERVER_BIN, or XDG_CACHE_HOME", error);
        }
    }

    /** What to do if the program cannot be started. */
    static String advice() {
        return "no dependency has a program for " + platform() + ": install a release, or set FAKE_APISERVER_BIN";
    }

    /** Folder in a jar, such as linux-x86_64. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return (system.startsWith("mac") ? "macos" : system) + "-"
                + switch (processor) {
                    case "amd64", "x86_64" -> "x86_64";
                    case "arm64", "aarch64" -> "aarch64";
                    default -> processor;
                };
    }

    private static Path cache() {
        String cache = System.getenv("XDG_CACHE_HOME");
        if (cache != null && !cache.isEmpty()) {
            return Path.of(cache);
        }
        // As other programs find it: the property user.home is not the variable.
        String home = System.getenv("HOME");
        return Path.of(home == null || home.isEmpty() ? System.getProperty("user.home") : home, ".cache");
    }

    /** Returns the unpacked program, or null if no jar has one for the platform. */
    static Path unpacked(String platform, Path cache) throws IOException {
        String resource = "binary/" + platform + "/" + NAME;
        String digest;
        try (InputStream file = Binary.class.getResourceAsStream(resource + ".sha256")) {
            if (file == null) {
                return null;
            }
            digest = new String(file.readAllBytes(), StandardCharsets.US_ASCII).strip();
        }
        Path program = cache.resolve(NAME).resolve(digest).resolve(NAME);
        if (Files.isExecutable(program)) {
            return program;
        }
        try (InputStream file = Binary.class.getResourceAsStream(resource)) {
            if (file == null) {
                throw new IOException(resource + " is not in its jar");
            }
            byte[] bytes = file.readAllBytes();
            if (!sha256(bytes).equals(digest)) {
                throw new IOException(resource + " does not have the SHA-256 " + digest + ": its jar is damaged");
            }
            Files.createDirectories(program.getParent());
            // Under another name first: tests start in several processes.
            Path unfinished = Files.createTempFile(program.getParent(), NAME, "");
            Files.write(unfinished, bytes);
            Files.setPosixFilePermissions(unfinished, PosixFilePermissions.fromString("rwxr-xr-x"));
            return Files.move(unfinished, program, StandardCopyOption.ATOMIC_MOVE);
        }
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("every Java has SHA-256", error);
        }
    }
}
