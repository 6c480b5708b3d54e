package main

import (
	"archive/zip"
	"compress/flate"
	"io"
	"os"
)

// size is that of a function's file, and of the archive that is uploaded, with the best compression.
type size struct{ file, archive int64 }

func sizeOf(bootstrap string) (size, error) {
	file, err := os.Open(bootstrap)
	if err != nil {
		return size{}, err
	}
	defer file.Close()
	var counted counter
	archive := zip.NewWriter(&counted)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	entry, err := archive.Create("bootstrap")
	if err != nil {
		return size{}, err
	}
	n, err := io.Copy(entry, file)
	if err != nil {
		return size{}, err
	}
	if err := archive.Close(); err != nil {
		return size{}, err
	}
	return size{n, int64(counted)}, nil
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
