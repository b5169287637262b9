# SPDX-License-Identifier: MIT
# bash completion of mailroom: `mailroom complete` knows the candidates, this passes the words.
# Nothing that it prints is evaluated: each line is one candidate as it is.

_mailroom() {
	local i word rest=${COMP_LINE:0:COMP_POINT} text lead candidate about
	local -a words=()

	# bash splits at = and : ("queue:builds" is three words): what stood together is put together again
	for ((i = 0; i <= COMP_CWORD; i++)); do
		text=${rest#"${rest%%[![:space:]]*}"}
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$text
		if [[ $text == "$rest" && ${#words[@]} -gt 0 && ($word == [:=]* || ${words[-1]} == *[:=]) ]]; then
			words[-1]+=$word
		else
			words+=("$word")
		fi
		rest=${text#"$word"}
	done
	word=${words[-1]}
	lead=${word%"${word##*[:=]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r candidate about; do
		if [[ $candidate == :files ]]; then
			compopt -o default
		else
			COMPREPLY+=("${candidate#"$lead"}")
		fi
	done < <(command mailroom complete -- "${words[@]:1}" 2>/dev/null </dev/null)
}
complete -F _mailroom mailroom
