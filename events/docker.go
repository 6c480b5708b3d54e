package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// docker is the Docker that is here.
type docker struct {
	version string
	// host is this machine as containers see it; listen is where they reach it.
	host, listen string
}

// String says which Docker it is.
func (d docker) String() string { return "Docker " + d.version }

// findDocker fails with a plain sentence when there is no Docker: nothing was run then.
func findDocker(ctx context.Context) (docker, error) {
	version, err := dockerSays(ctx, nil, "version", "--format", "{{.Server.Version}}")
	if err != nil {
		return docker{}, fmt.Errorf("not run: sam local invoke runs functions in Docker, and none answers here: %w", err)
	}
	subnets, err := dockerSays(ctx, nil, "network", "inspect", "bridge", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}")
	if err != nil {
		return docker{}, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return docker{}, err
	}
	for subnet := range strings.FieldsSeq(subnets) {
		_, network, err := net.ParseCIDR(subnet)
		if err != nil {
			return docker{}, fmt.Errorf("Docker's network: %w", err)
		}
		for _, a := range addresses {
			if here, ok := a.(*net.IPNet); ok && network.Contains(here.IP) {
				return docker{version, here.IP.String(), here.IP.String()}, nil
			}
		}
	}
	// Docker in a machine of its own, as on a Mac: it leads this name to loopback here.
	return docker{version, "host.docker.internal", "127.0.0.1"}, nil
}

// dockerSays runs a command of Docker's and gives what it prints.
func dockerSays(ctx context.Context, input io.Reader, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "docker", arguments...)
	var out, log bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = input, &out, &log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", arguments[0], err, strings.TrimSpace(log.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// image is what functions run in.
type image struct {
	name string
	// standIn: it is not AWS's, which could not be had.
	standIn bool
}

// String says whose image it is.
func (i image) String() string {
	if i.standIn {
		return "AWS's runtime emulator in a STAND-IN IMAGE, because AWS's could not be pulled"
	}
	return "image " + i.name
}

// image gives AWS's image for the runtime or, where it cannot be had, a stand-in of our own.
func (d docker) image(ctx context.Context) (image, error) {
	aws := "public.ecr.aws/lambda/provided:al2023-" + architecture()
	if _, err := dockerSays(ctx, nil, "image", "inspect", aws); err == nil {
		return image{name: aws}, nil
	}
	_, refused := dockerSays(ctx, nil, "pull", aws)
	if refused == nil {
		return image{name: aws}, nil
	}
	i := image{name: "makegood-stand-in:al2023-" + architecture(), standIn: true}
	files, err := standInFiles()
	if err != nil {
		return image{}, fmt.Errorf("%w; and no stand-in for it can be made: %w", refused, err)
	}
	_, err = dockerSays(ctx, files, "import", "--change", "WORKDIR /var/task", "--change", "ENV PATH=/bin", "-", i.name)
	return i, err
}

// standInFiles is what sam needs in an image, as a tar archive: folders, and sh, mv and chmod by busybox.
func standInFiles() (io.Reader, error) {
	const busybox = "/bin/busybox"
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install busybox-static)", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	var wrong []error
	for _, folder := range []string{"bin/", "tmp/", "etc/", "opt/", "var/", "var/task/", "var/runtime/"} {
		wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}))
	}
	wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}))
	_, err = w.Write(program)
	wrong = append(wrong, err)
	for _, name := range []string{"sh", "mv", "chmod"} {
		wrong = append(wrong, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}))
	}
	wrong = append(wrong, w.Close())
	return &archive, errors.Join(wrong...)
}

// bridge makes a server on loopback reachable for containers, and for nobody else, until stop is called; it
// gives the address that they see.
func (d docker) bridge(ctx context.Context, server string) (seen string, stop func(), err error) {
	to, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(d.listen, "0"))
	if err != nil {
		return "", nil, fmt.Errorf("listen for containers: %w", err)
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // It was closed.
			}
			go forward(from, to.Host)
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return "http://" + net.JoinHostPort(d.host, port), func() { _ = listener.Close() }, err
}

// forward copies between a connection and a server, until one of them has ended.
func forward(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // The function sees its connection end, and says so.
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // However it ends, it has ended.
			done <- struct{}{}
		}()
	}
	<-done
}
