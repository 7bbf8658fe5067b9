package io.github.fakeapiserver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BinaryTest {
    @Test
    void aProgramIsUnpackedOnce(@TempDir Path cache) throws IOException {
        Path program = Binary.unpacked("sample", cache);
        assertEquals("program\n", Files.readString(program));
        assertTrue(Files.isExecutable(program));
        Files.writeString(program, "kept");
        assertEquals("kept", Files.readString(Binary.unpacked("sample", cache)));
    }

    @Test
    void aDamagedJarIsRejected(@TempDir Path cache) {
        IOException error = assertThrows(IOException.class, () -> Binary.unpacked("damaged", cache));
        assertTrue(error.getMessage().contains("its jar is damaged"), error.getMessage());
    }

    @Test
    void noJarForAPlatformIsNoProgram(@TempDir Path cache) throws IOException {
        assertNull(Binary.unpacked("plan9-mips", cache));
    }
}
