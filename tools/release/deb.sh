#!/usr/bin/env bash
# build-release/dist/invar_VERSION-1_ARCH.deb: the programs, the shipped model, pages for man,
# completion and the unit invar-serve, which nothing enables. For Debian 12 and 13, Ubuntu 22.04 and
# 24.04. The options are those of build.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/build.sh"

lay_out_deb() { # FOLDER
  local deb=$1 own="$root/tools/release/debian" doc="$1/usr/share/doc/invar" script
  rm -rf "$deb"
  mkdir -p "$deb/DEBIAN" "$deb/etc/invar" "$deb/usr/lib/systemd/system" "$deb/usr/share/lintian/overrides"
  cp -r "$stage/program/." "$deb/usr"
  mkdir "$deb/usr/share/zsh/vendor-completions"  # where Debian's zsh looks
  mv "$deb"/usr/share/zsh/site-functions/* "$deb/usr/share/zsh/vendor-completions/"
  rmdir "$deb/usr/share/zsh/site-functions"
  gzip -9n "$deb"/usr/share/man/man1/*
  rm "$doc/LICENSE"  # Debian has the text
  mv "$doc/CHANGELOG.md" "$doc/changelog" && gzip -9n "$doc/changelog"
  cp "$own/copyright" "$doc/"
  debian_changelog | gzip -9n >"$doc/changelog.Debian.gz"
  cp "$own/lintian-overrides" "$deb/usr/share/lintian/overrides/invar"
  cp "$own/serve.json" "$deb/etc/invar/"
  grep -v '^# Install:' "$root/examples/serve/invar-serve.service" \
    >"$deb/usr/lib/systemd/system/invar-serve.service"
  echo /etc/invar/serve.json >"$deb/DEBIAN/conffiles"
  for script in postinst prerm postrm; do install -m 755 "$own/$script" "$deb/DEBIAN/"; done
  (cd "$deb" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$deb/DEBIAN/md5sums"
  control "$deb" >"$deb/DEBIAN/control"
}

# Who answers for this build: the committer.
maintainer=$(git -c safe.directory="$root" -C "$root" log -1 --format='%cn <%ce>')
debian_changelog() {
  printf 'invar (%s-1) unstable; urgency=medium\n\n' "$version"
  printf '  * Release %s; changelog.gz says what is new.\n\n' "$version"
  printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}
shared_libraries() { # FOLDER: what the programs depend on
  local here="$build/shlibdeps"
  mkdir -p "$here/debian"
  printf 'Source: invar\n\nPackage: invar\nArchitecture: any\n' >"$here/debian/control"
  (cd "$here" && dpkg-shlibdeps -O "$1"/usr/bin/* 2>/dev/null) | sed 's/^shlibs:Depends=//'
}
control() { # FOLDER
  cat <<TEXT
Package: invar
Version: $version-1
Architecture: $(dpkg --print-architecture)
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$1" | cut -f 1)
Depends: $(shared_libraries "$1")
Recommends: ca-certificates, libcurl4 | libcurl4t64, libsqlite3-0
Suggests: libedit2, libpq5
Section: science
Priority: optional
Description: AI inference whose bits do not change with the machine
 Invar runs language models and other ONNX models with the same bits on every
 processor. A receipt of an answer lets a stranger check it on another machine,
 or find where it parts from the claim.
 .
 This package has the command invar, its terminal interface, a small model to
 try, and a unit of systemd for a server of OpenAI's protocol.
TEXT
}

release "$@"
command -v dpkg-shlibdeps >/dev/null || fail 'dpkg-shlibdeps is missing; apt-get install dpkg-dev'
lay_out_deb "$stage/deb"
python3 -B "$root/tools/release/archive.py" deb "$stage/deb" \
  "$dist/invar_$version-1_$(dpkg --print-architecture).deb"
