# SPDX-License-Identifier: MIT
# fish completion of mailroom: `mailroom complete` knows the candidates, this passes the words.

function __mailroom_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (command mailroom complete -- $words[2..-1] 2>/dev/null </dev/null)
    if contains -- ':files' $lines
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $lines
    end
end
complete -c mailroom -f -a '(__mailroom_complete)'
